"""The waiting page as visitors in different states would see it: `PreviewState` has the published
parameters, `SHOWN_STATES` are the dashboard's.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from greenroom.model.record import replace
from greenroom.model.visit import Estimate, Held
from greenroom.pages.page import Page

EVENTS = ("none", "prequeueing", "started")
EVENT_LASTS_MS = 3_600_000
QUARTER, THREE_QUARTERS = 0.415, 2.0
"""Of the median, by the published formula of random rooms."""

POSITION, WAITING = 42, 120

THEMES = ("light", "dark")

SANDBOX = "sandbox allow-scripts"
"""A template must not act with the rights of the operator who looks at it."""

_PREFERS = re.compile(rb"\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)", re.IGNORECASE)
_BOTH_SCHEMES = re.compile(rb"(color-scheme\s*:\s*)light dark", re.IGNORECASE)
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)
ALWAYS, NEVER = b"(min-width:0)", b"(max-width:0)"
"""Media queries."""


class PreviewState(msgspec.Struct, frozen=True, kw_only=True):
    force_queue: bool = False
    queue_is_full: bool = False
    queueing_method: str = "fifo"
    event: str = "none"
    shuffle_at_event_start: bool = False
    wait_minutes: int = 10
    language: str = "en-US"

    @property
    def passes(self) -> bool:
        return (
            self.queueing_method == "passthrough"
            and not self.force_queue
            and self.event != "prequeueing"
        )

    def held(self, now_ms: int) -> Held:
        median_s = self.wait_minutes * 60.0
        random = self.queueing_method == "random"
        estimate = (
            Estimate(median_s * QUARTER, median_s, median_s * THREE_QUARTERS)
            if random
            else Estimate(median_s, median_s, median_s)
        )
        prequeue, closed = (
            self.event == "prequeueing",
            self.queueing_method == "reject" and not self.force_queue,
        )
        start_ms = now_ms + self.wait_minutes * 60_000 if prequeue else now_ms
        refresh_s = 0 if closed and not prequeue else 20
        method = self.queueing_method
        if method == "reject" and refresh_s:
            method = "fifo"  # as a room says that holds with a place
        return Held(
            now_ms=now_ms,
            method=method,
            last_updated_ms=now_ms,
            refresh_s=refresh_s,
            next_try_s=refresh_s,
            estimate=estimate,
            queue_full=self.queue_is_full,
            queue_all=self.force_queue,
            position=0 if self.queue_is_full else POSITION,
            ahead=0 if self.queue_is_full else POSITION - 1,
            waiting=WAITING,
            joined_ms=now_ms - 60_000,
            in_line=not self.queue_is_full,
            event_active=self.event != "none",
            event_prequeueing=prequeue,
            event_start_ms=start_ms,
            event_end_ms=start_ms + EVENT_LASTS_MS,
            shuffle_at_event_start=self.shuffle_at_event_start,
        )


class ShownState(NamedTuple):
    label: str
    held: Callable[[int], Held]


def _of(changes: Mapping[str, Any] | None = None, **state: Any) -> Callable[[int], Held]:
    return lambda now_ms: replace(PreviewState(**state).held(now_ms), **(changes or {}))


SHOWN_STATES: Mapping[str, ShownState] = {
    "fifo": ShownState("In line, first come, first served", _of()),
    "next": ShownState(
        "In line, next to be let in",
        _of({"position": 1, "ahead": 0, "estimate": Estimate(20, 20, 20, 40)}),
    ),
    "random": ShownState("In line, random order", _of(queueing_method="random")),
    "unknown": ShownState("In line, wait not known yet", _of({"estimate": None})),
    "new": ShownState(
        "Just arrived, no place yet", _of({"position": 0, "ahead": 0, "in_line": False})
    ),
    "prequeue": ShownState("Before an event", _of(event="prequeueing")),
    "draw": ShownState(
        "Before an event, random order",
        _of(event="prequeueing", shuffle_at_event_start=True),
    ),
    "event": ShownState("During an event", _of(event="started")),
    "hold": ShownState("You hold all new visitors", _of(force_queue=True)),
    "full": ShownState("The line itself is full", _of(queue_is_full=True)),
    "reject": ShownState("New visitors are rejected", _of(queueing_method="reject")),
    "storage": ShownState("Storage failure", _of({"storage_failed": True})),
    "origin": ShownState("Your application is unhealthy", _of({"origin_stops": "unhealthy"})),
    "slow": ShownState("Your application is too slow", _of({"origin_stops": "slow"})),
}


def still(held: Held) -> Held:
    return replace(held, next_try_s=0)


def in_theme(page: bytes, theme: str) -> bytes:
    """Browsers tell a sandboxed frame the system's theme only."""
    wanted = theme.encode()
    decided = _PREFERS.sub(lambda found: ALWAYS if found[1].lower() == wanted else NEVER, page)
    return _BOTH_SCHEMES.sub(rb"\g<1>" + wanted, decided)


def preview_policy(page: Page, shown: bytes) -> str:
    """The policy names the style by its hash, which `in_theme` has changed."""
    own = [] if page.custom else page.html_headers.pairs
    parts = [
        part.strip()
        for key, value in own
        if key == b"Content-Security-Policy"
        for part in value.decode("ascii").split(";")
    ]
    kept = [
        part
        for part in parts
        if not part.startswith(("style-src", "frame-ancestors", "form-action", "connect-src"))
    ]
    styles = (
        [
            f"style-src 'sha256-{b64encode(sha256(style).digest()).decode()}'"
            for style in _STYLE.findall(shown)[:1]
        ]
        if own
        else []
    )
    return "; ".join([SANDBOX, "frame-ancestors 'self'", *kept, *styles])
