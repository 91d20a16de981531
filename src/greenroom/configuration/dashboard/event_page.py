"""The event's own waiting page in its form: previews of each moment before it is saved."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from starlette.responses import Response

from greenroom.model.record import replace
from greenroom.pages import compile_page, template_problems
from greenroom.pages.preview import SHOWN_STATES, preview_policy, still
from greenroom.web.pages.frames import FRAME, problems_in_frame
from greenroom.web.pages.request import PageRequest


class EventMoment(NamedTuple):
    """`state` is one of SHOWN_STATES."""

    label: str
    state: str
    during: bool = True


MOMENTS: Mapping[str, EventMoment] = {
    "before": EventMoment("Before the event: the room's page", "fifo", during=False),
    "prequeue": EventMoment("In the pre-queue", "prequeue"),
    "draw": EventMoment("In the pre-queue, random order", "draw"),
    "line": EventMoment("In line during the event", "event"),
    "reject": EventMoment("New visitors are rejected", "reject"),
}


def preview(page: PageRequest) -> Response:
    moment = MOMENTS.get(page.field("moment"), MOMENTS["prequeue"])
    html = own_html(page.field("custom_page_html"))
    problems = template_problems(html, "template") if html else []
    if problems:
        return problems_in_frame(page, [f"Line {one.line or 1}: {one.reason}" for one in problems])
    room = page.room.record
    if html and moment.during:
        room = dataclasses.replace(room, custom_page_html=html)
    offers = page.known.offers_of(room.id)
    compiled = compile_page(room, offers is not None)
    held = still(SHOWN_STATES[moment.state].held(page.now_ms))
    body = compiled.html(replace(held, offers=offers) if offers is not None else held)
    policy = preview_policy(compiled, body)
    headers = FRAME | {"Content-Security-Policy": policy}
    return Response(body, media_type="text/html", headers=headers)


def own_html(text: str) -> str:
    """Empty: the room's page."""
    return text.replace("\r\n", "\n") if text.strip() else ""
