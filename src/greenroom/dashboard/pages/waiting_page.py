"""The waiting page of a room: its theme, messages and template, and previews of it in every state
before it is saved.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from greenroom.configuration import rooms
from greenroom.dashboard.page_forms import (
    LANGUAGE_NAMES,
    STARTERS,
    branding_fields,
    language_field,
    logo_faults,
    message_rows,
    page_document,
    shades,
    shown_page,
    starter,
)
from greenroom.dashboard.parts import FETCH_LOGO
from greenroom.errors import GreenroomError
from greenroom.model.account import Role
from greenroom.model.record import replace as with_fields
from greenroom.model.room import TEMPLATE_MAX, Room
from greenroom.pages import compile_page, template_problems
from greenroom.pages.preview import SHOWN_STATES, THEMES, in_theme, preview_policy, still
from greenroom.pages.variables import TEMPLATE_VARIABLES
from greenroom.web.api_schema import EXTENSION
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ConfigChange
from greenroom.web.pages.forms import Faults, flat, unchanged_since
from greenroom.web.pages.frames import FRAME, problems_in_frame
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import Threads, action, view
from greenroom.web.refusals import ApiFault, Code, Refused

PAGE_PATH = "/zones/{zone_id}/rooms/{room_id}/page"
START_STATE = "fifo"


def show(page: PageRequest) -> Response:
    return _form(page, shown_page(page.room.record), Faults())


def save(page: PageRequest) -> Response:
    room, address = page.room, page.field("logo_url").strip()
    try:
        fetch_logo = page.part(FETCH_LOGO)
        picture = fetch_logo(address) if address and fetch_logo else ""
    except GreenroomError as error:
        wrong = ApiFault(
            Code.INVALID,
            f"branding: greenroom.branding.logo: {address[:100]} {error}",
            "/greenroom/branding/logo",
        )
        return _form(page, flat(_document(page)), Faults([wrong]), status=400)
    document = _document(page, picture)
    if page.field("step") == "starter":
        text = starter(page.field("starter")) or ""
        return _form(
            page, {**flat(document), "custom_page_html": text, "own": bool(text)}, Faults()
        )
    try:
        plan = rooms.change(page.zone.id, room.id, document, whole=False)
        page.change(unchanged_since("room", room.id, page.field("revision"), plan))
    except Refused as refused:
        return _form(page, flat(document), Faults(refused.faults), status=refused.status)
    return page.redirect(f"/zones/{page.zone.id}/rooms/{room.id}/page", notice="saved")


def preview(page: PageRequest) -> Response:
    document = _document(page)
    branding = document[EXTENSION]["branding"]
    if branding["accent_color"] and not shades(branding["accent_color"]):
        branding["accent_color"] = page.room.record.branding.accent_color  # half typed, or wrong
    plan = rooms.change(page.zone.id, page.room.id, document, whole=False)
    try:
        room = page.config.trial(_becoming(plan))
    except Refused as refused:
        return problems_in_frame(page, [fault.message for fault in refused.faults])
    return _shown(page, room, _chosen(page.field))


def visitor(page: PageRequest) -> Response:
    return _shown(page, page.room.record, _chosen(page.query))


def check(page: PageRequest) -> Response:
    _ = page.room  # 404 where there is none
    faults = [
        {"line": one.line or 1, "message": one.reason}
        for one in template_problems(page.field("custom_page_html"), "template")
    ]
    return JSONResponse(
        {
            "faults": faults,
            "shades": [shade._asdict() for shade in shades(page.field("accent_color").strip())],
        }
    )


def _chosen(read: Callable[[str], str]) -> Mapping[str, str]:
    return {name: read(name) for name in ("state", "language", "theme")}


def _document(page: PageRequest, logo: str = "") -> Json:
    return page_document(page.form, logo or page.room.record.branding.logo)


def _becoming(plan: ConfigChange) -> ConfigChange:
    def planned(known: Any, at: Any) -> Any:
        change = plan(known, at)
        put: Any = change.changes[0]
        return change._replace(answer=lambda _known: put.record)

    return planned


def _shown(page: PageRequest, room: Room, wanted: Mapping[str, str]) -> Response:
    state = SHOWN_STATES.get(wanted["state"], SHOWN_STATES[START_STATE])
    language = wanted["language"]
    offers = page.known.offers_of(room.id)
    compiled = compile_page(
        replace(room, default_template_language=language) if language in LANGUAGE_NAMES else room,
        offers is not None,
    )
    held = still(state.held(page.now_ms))
    body = compiled.html(with_fields(held, offers=offers) if offers is not None else held)
    if wanted["theme"] in THEMES:
        body = in_theme(body, wanted["theme"])
    return Response(
        body,
        media_type="text/html",
        headers=FRAME | {"Content-Security-Policy": preview_policy(compiled, body)},
    )


def _form(
    page: PageRequest, values: Mapping[str, Any], faults: Faults, status: int = 200
) -> Response:
    entry = page.room
    branding = {**shown_page(entry.record)["branding"], **values["branding"]}
    template_faults, message_faults = (
        faults.take("custom_page_html"),
        faults.take("branding_messages"),
    )
    wrong_logo = logo_faults(faults)
    fields = branding_fields(branding, faults)
    return page.render(
        "waiting_page.html",
        status,
        entry=entry,
        zone=page.zone,
        may=page.person.may(Role.OPERATOR) and not entry.read_only,
        values=values,
        own=bool(values.get("own", values["custom_page_html"])),
        branding=branding,
        fields=fields,
        logo=entry.record.branding.logo,
        uploaded=_uploaded(entry.record, branding["logo"], wrong_logo),
        dropped=bool(page.field("drop_logo")),
        logo_faults=wrong_logo,
        logo_url=page.field("logo_url"),
        by_address=page.part(FETCH_LOGO) is not None,
        language=language_field(values["default_template_language"], faults),
        messages=message_rows(values["branding_messages"]),
        message_faults=message_faults,
        template_faults=template_faults,
        problems=faults.general,
        languages=LANGUAGE_NAMES,
        shades=shades(branding["accent_color"]),
        states=[(name, state.label) for name, state in SHOWN_STATES.items()],
        chosen=_chosen(page.field),
        starters=STARTERS,
        template_max=TEMPLATE_MAX,
        variables=TEMPLATE_VARIABLES,
        revision=page.field("revision") or str(entry.revision),
    )


def _uploaded(room: Room, logo: str, wrong: tuple[str, ...]) -> str:
    """Another field was wrong, and the form sends the logo again."""
    return logo if logo != room.branding.logo and not wrong else ""


PAGES = (
    view(PAGE_PATH, show),
    action(PAGE_PATH, save, threads=Threads.OUTBOUND),
    action(f"{PAGE_PATH}/preview", preview),
    action(f"{PAGE_PATH}/check.json", check),
    view(f"{PAGE_PATH}/visitor", visitor),
)
