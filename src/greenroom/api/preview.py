"""Previews: templates kept for an hour at an address without a token."""

import threading
import uuid
from collections import OrderedDict
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from greenroom.api.app import PREFIX
from greenroom.configuration.dependencies import WithConfig
from greenroom.configuration.zones import zone_of
from greenroom.model.clock import Clock
from greenroom.pages import template_problems
from greenroom.web.dependencies import Document
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
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


router = Router(tags=["preview"])


@router.post(
    "/zones/{zone_id}/waiting_rooms/preview", **told("PreviewUrl", may="edit", body="Preview")
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
