"""Words of `explain` about an answer."""

from greenroom.admission.decide import is_head_of_page
from greenroom.model.room import Room
from greenroom.model.visit import Arrival
from greenroom.request.admissible import (
    is_crawler,
    is_data,
    shows_page,
    signs_in,
)
from greenroom.request.cookie_scope import cookie_scope
from greenroom.request.cross_origin import listed_origin


def cookie_words(room: Room) -> str:
    scope = cookie_scope(room.routes, room.case_insensitive_paths)
    return (
        f"{room.cookie_name}; {f'Domain={scope.domain}; ' if scope.domain else ''}Path={scope.path}"
    )


def answer_words(arrival: Arrival, room: Room, word: str) -> str:
    if word == "line_table":
        return "status 200, JSON, the same for all visitors for a second, without a cookie"
    status = room.queueing_status_code
    in_json = room.json_response_enabled and signs_in(arrival).prefers_json
    without_place, head = word in ("placeless", "provisional"), is_head_of_page(room, arrival)
    if (without_place and not head) or not (
        in_json or room.same_status_for_all or shows_page(arrival)
    ):
        return f"status {status if room.same_status_for_all else 503}, a short text, no page"
    if not room.same_status_for_all and (is_crawler(arrival) or (not in_json and is_data(arrival))):
        status = 503
    if in_json:
        page = "JSON"
    elif room.custom_page_html:
        page = f"the custom page ({len(room.custom_page_html)} characters)"
    else:
        follows = " or the browser's language" if room.follow_accept_language else ""
        page = f"the built-in page in {room.default_template_language}{follows}"
    refreshes = "which does not refresh" if word == "reject" else "which refreshes by itself"
    cookie = (
        "" if word == "reject" else ", without a cookie" if without_place else ", with a cookie"
    )
    return f"status {status}, {page}, {refreshes}{cookie}{'; only its head' if head else ''}"


def notes_words(arrival: Arrival, room: Room, result: str) -> tuple[str, ...]:
    notes = []
    cookies = b"; ".join(value for name, value in arrival.headers if name == b"cookie").decode(
        "latin-1"
    )
    if any(part.strip().startswith(f"{room.cookie_name}=") for part in cookies.split(";")):
        notes.append(
            "The request has a ticket of this room. While the ticket is valid and its session is"
            " active, the visitor goes to the origin; otherwise this applies."
        )
    elif result not in ("origin", "table"):
        notes.append(
            "This applies to a new visitor. A visitor with an active session goes to the origin."
        )
    origin = listed_origin(arrival, room.cors_origins).decode()
    if origin and result != "origin":
        notes.append(f"Scripts of {origin} can read the answer (cors_origins).")
    return tuple(notes)
