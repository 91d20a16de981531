"""Previews: templates kept for an hour at an address without a token."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from greenroom.api.app import PREFIX
from greenroom.configuration.dependencies import WithConfig
from greenroom.configuration.zones import zone_of
from greenroom.model.clock import Clock
from greenroom.model.room import LANGUAGES, METHODS, Room
from greenroom.model.visit import Held
from greenroom.pages import compile_page, template_problems
from greenroom.pages.preview import EVENTS, PreviewState
from greenroom.pages.variables import WAIT_MINUTES_MAX
from greenroom.web.dependencies import Document
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    faults_of,
    refuse_if,
)
from greenroom.web.routing import Router

PREVIEW_MS = 3_600_000

PREVIEWS_BYTES = 16 << 20
"""The oldest goes first."""

PREVIEW_PATH = "/preview"


class _Kept(NamedTuple):
    template: str
    until_ms: int


class Previews:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0
        self._guard = threading.Lock()

    def keep(self, template: str) -> str:
        preview_id = str(uuid.uuid4())
        with self._guard:
            self._kept[preview_id] = _Kept(template, self._clock.now_ms() + PREVIEW_MS)
            self._size += len(template)
            while self._size > PREVIEWS_BYTES:
                _, oldest = self._kept.popitem(last=False)
                self._size -= len(oldest.template)
        return preview_id

    def get(self, preview_id: str) -> str | None:
        with self._guard:
            kept = self._kept.get(preview_id)
        return kept.template if kept and kept.until_ms > self._clock.now_ms() else None


_PREVIEW = {
    "type": "object",
    "properties": {"custom_html": {"type": "string"}},
    "required": ["custom_html"],
    "additionalProperties": False,
}
_PREVIEW_URL = {
    "type": "object",
    "properties": {"preview_url": {"type": "string", "format": "uri"}},
    "required": ["preview_url"],
}

router = Router(tags=["preview"], schemas={"Preview": _PREVIEW, "PreviewUrl": _PREVIEW_URL})


@router.post(
    "/zones/{zone_id}/waiting_rooms/preview", **documented("PreviewUrl", may="edit", body="Preview")
)
def make_preview(
    config_service: WithConfig, document: Document, request: Request, zone_id: str
) -> Response:
    """Preview a template. Nothing is saved; the address is good for an hour and needs no token."""
    config_service.look(lambda known: zone_of(known, zone_id))
    previews: Previews = request.app.state.previews
    html = _custom_html(document)
    base = request.base_url.replace(
        path=f"{PREFIX}{PREVIEW_PATH}/{previews.keep(html)}", query="", fragment=""
    )
    return answered({"preview_url": str(base)})


def _custom_html(document: object) -> str:
    if not isinstance(document, dict):
        raise Refused(ApiFault(Code.BAD_BODY, "the body must be a JSON object"))
    faults = [
        ApiFault(Code.UNKNOWN_FIELD, f"{name}: unknown field", f"/{name}")
        for name in document
        if name != "custom_html"
    ]
    html = document.get("custom_html")
    if not isinstance(html, str):
        code = Code.INVALID if "custom_html" in document else Code.REQUIRED
        raise Refused(
            *faults,
            ApiFault(code, "custom_html: must be the template, as a string", "/custom_html"),
        )
    refuse_if(faults + faults_of(template_problems(html, "custom_html"), Code.TEMPLATE))
    return html


# Shows a previewed template, or the built-in page, in any state: as HTML, or as JSON.

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
