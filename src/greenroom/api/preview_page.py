"""Shows a previewed template, or the built-in page, in any state: as HTML, or as JSON."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from greenroom.api.preview import PREVIEW_PATH, Previews
from greenroom.model.clock import Clock
from greenroom.model.room import LANGUAGES, METHODS, Room
from greenroom.model.visit import Held
from greenroom.pages import compile_page
from greenroom.pages.preview import EVENTS, PreviewState
from greenroom.pages.variables import WAIT_MINUTES_MAX

BUILT_IN = "built-in"

WELCOME = b"<!doctype html><html lang=en><meta charset=utf-8><title>Welcome</title><h1>Welcome</h1>"

SANDBOX = "sandbox allow-scripts allow-forms allow-popups"
"""A template must not act with the rights of the operator who looks at it."""


def state_of(query: Mapping[str, str]) -> PreviewState | list[str]:
    wrong = [
        f"{name}: unknown parameter; known parameters: {', '.join(PARAMETERS)}"
        for name in query
        if name not in PARAMETERS
    ]
    found: dict[str, Any] = {}
    for name, (field, read, wanted) in PARAMETERS.items():
        if name in query:
            value = read(query[name])
            if value is None:
                wrong.append(f"{name}: must be {wanted}, not {query[name][:60]!r}")
            else:
                found[field] = value
    if found.get("shuffle_at_event_start") and found.get("event", "none") == "none":
        wrong.append("shuffle_at_event_start: only together with an event")
    return wrong or PreviewState(**found)


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False, "1": True, "0": False}.get(text.lower())


def _minutes(text: str) -> int | None:
    fits = (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(WAIT_MINUTES_MAX))
        and 0 < int(text) <= WAIT_MINUTES_MAX
    )
    return int(text) if fits else None


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str | None]:
    return lambda text: text if text in choices else None


PARAMETERS: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "force_queue": ("force_queue", _boolean, "true or false"),
    "queue_is_full": ("queue_is_full", _boolean, "true or false"),
    "queueing_method": ("queueing_method", _one_of(METHODS), f"one of {', '.join(METHODS)}"),
    "event": ("event", _one_of(EVENTS), f"one of {', '.join(EVENTS)}"),
    "shuffle_at_event_start": ("shuffle_at_event_start", _boolean, "true or false"),
    "waitTime": (
        "wait_minutes",
        _minutes,
        f"a whole number of minutes from 1 to {WAIT_MINUTES_MAX}",
    ),
    "language": ("language", _one_of(LANGUAGES), "one of the published languages"),
}
"""`language` is ours."""


def preview_routes(previews: Previews, clock: Clock) -> list[BaseRoute]:
    """A preview URL needs no token, as published."""

    async def show(request: Request) -> Response:
        preview_id = request.path_params["preview_id"]
        template = "" if preview_id == BUILT_IN else previews.get(preview_id)
        if template is None:
            return PlainTextResponse(
                "There is no such preview, or it has expired (after one hour).\n", 404
            )
        state = state_of(request.query_params)
        if isinstance(state, list):
            return PlainTextResponse("".join(f"{reason}\n" for reason in state), 400)
        if state.passes:
            return Response(WELCOME, media_type="text/html")
        return _shown(template, state, state.held(clock.now_ms()), request)

    return [Route(f"{PREVIEW_PATH}/{{preview_id}}", show)]


def _shown(template: str, state: PreviewState, held: Held, request: Request) -> Response:
    room = Room(
        name="preview",
        host="*",
        total_active_users=1,
        new_users_per_minute=1,
        custom_page_html=template,
        default_template_language=state.language,
    )
    page = compile_page(room)
    update = request.headers.get("greenroom-update", "")
    as_json = bool(update) or request.headers.get("accept") == "application/json"
    body = (
        page.update(held, update.encode("latin-1"))
        if update
        else page.json(held)
        if as_json
        else page.html(held)
    )
    pairs = (page.json_headers if as_json else page.html_headers).pairs
    headers = {name.decode("ascii"): value.decode("ascii") for name, value in pairs}
    if page.custom and not as_json:
        headers["Content-Security-Policy"] = SANDBOX
    return Response(body, headers=headers)
