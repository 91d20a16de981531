"""The audit log: who did what and when, newest first, with filters; each row opens the values
before and after.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.configuration.operations import CAPACITY, in_words, operation_changes
from greenroom.model.change import AuditEntry, AuditFilter
from greenroom.model.configuration import KINDS, Configuration
from greenroom.model.fields import form_fields, plural
from greenroom.model.room import Room
from greenroom.web.pages.rendering import Viewer
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view
from greenroom.web.time_format import from_input

PER_PAGE = 50
VALUE_SHOWN = 2_000
TOLD_CHANGES = 3
ROOMS_OFFERED = 500

LABELS: Mapping[str, str] = {name: one.label for name, one in form_fields(Room).items()} | {
    "event_start_ms": "Start",
    "event_end_ms": "End",
    "prequeue_start_ms": "Pre-queue",
    "custom_page_html": "Waiting page",
}
LABELLED_KINDS = ("room", "event")
KIND_WORDS = {
    "operation": "live operation",
    "rules": "bypass rules",
    "offers": "offers",
    "list_item": "list entry",
    "pagerduty_service": "PagerDuty service",
    "incident_note": "status message",
    "alert_policy": "notification",
    "token": "API token",
}


class AuditLine(NamedTuple):
    """(field, before, after), each as text or None."""

    entry: AuditEntry
    words: str
    differing: list[tuple[str, str | None, str | None]]


def table(page: PageRequest) -> Response:
    asked = page.query("before")
    before = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 16 else None
    wanted = {name: page.query(name).strip()[:200] for name in FILTERS}
    found = page.config.store.audit(PER_PAGE + 1, before, where=_filter(page, wanted))
    lines = [
        AuditLine(entry, words(entry, page.known), _differing(entry)) for entry in found[:PER_PAGE]
    ]
    kept = {name: text for name, text in wanted.items() if text}
    return page.render(
        "audit.html",
        lines=lines,
        older=found[PER_PAGE - 1].number if len(found) > PER_PAGE else None,
        newest=before is None,
        wanted=wanted,
        kept=kept,
        kinds=sorted((_kind_word(kind), kind) for kind in AUDITED),
        people=sorted(account.name for account in page.known.accounts.records()),
        rooms=sorted({room.name for room in page.known.rooms.records()})[:ROOMS_OFFERED],
    )


AUDITED = (*KINDS, CAPACITY)
FILTERS = ("who", "room", "kind", "from", "to")


def _filter(page: PageRequest, wanted: Mapping[str, str]) -> AuditFilter:
    zone = Viewer.of(page.request.headers, page.request.cookies).zone
    ids: tuple[str, ...] | None = None
    if wanted["room"]:
        ids = tuple(
            entry.id for entry in page.known.rooms.values() if entry.record.name == wanted["room"]
        )
    return AuditFilter(
        author=wanted["who"],
        kind=wanted["kind"] if wanted["kind"] in AUDITED else "",
        subjects=ids,
        name=wanted["room"],
        from_ms=from_input(wanted["from"], zone),
        to_ms=from_input(wanted["to"], zone),
    )


def words(entry: AuditEntry, known: Configuration) -> str:
    """What somebody did, after their name."""
    if entry.kind == "operation":
        told = [in_words(kind, after, entry.name) for kind, _, after in operation_changes(entry)]
        return ", ".join(filter(None, told)) or f"changed operations of {entry.name}"
    if entry.kind == CAPACITY and entry.after:
        limit, reason = entry.after["active_visitors"], entry.after["reason"]
        return f"set {entry.after['room']} to {limit:,} active {plural(limit, 'visitor')}: {reason}"
    room = known.rooms.get(entry.name)  # rules have its id for a name
    thing = f"{_kind_word(entry.kind)} {room.record.name if room else entry.name}"
    if entry.action != "changed" or entry.kind not in LABELLED_KINDS:
        return f"{entry.action} {thing}"
    before, after = entry.before or {}, entry.after or {}
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    told = [_changed(name, before.get(name), after.get(name)) for name in names[:TOLD_CHANGES]]
    if not told:
        return f"changed {thing}"
    more = f" and {len(names) - TOLD_CHANGES} more" if len(names) > TOLD_CHANGES else ""
    return f"{', '.join(told)}{more} in {thing}"


def _kind_word(kind: str) -> str:
    return KIND_WORDS.get(kind, kind.replace("_", " "))


def _changed(name: str, before: Any, after: Any) -> str:
    label = LABELS.get(name, name.replace("_", " "))
    if isinstance(before, bool) or isinstance(after, bool):
        return f"switched {'on' if after else 'off'} {label}"
    if name.endswith("_ms"):
        return f"moved {label}"
    if not isinstance(before, int) or not isinstance(after, int):
        return _set(label, after) if _is_short(after) else f"changed {label}"
    return f"{'raised' if after > before else 'lowered'} {label} from {before:,} to {after:,}"


def _set(label: str, value: Any) -> str:
    if value is None or value == "":
        return f"cleared {label}"
    return f"set {label} to {value:,}" if isinstance(value, int) else f"set {label} to “{value}”"


def _is_short(value: Any) -> bool:
    return value is None or isinstance(value, int) or (isinstance(value, str) and len(value) <= 60)


def _differing(entry: AuditEntry) -> list[tuple[str, str | None, str | None]]:
    before, after = entry.before or {}, entry.after or {}
    names = [
        name
        for name in {**before, **after}
        if before.get(name) != after.get(name) or entry.action != "changed"
    ]
    labels = LABELS if entry.kind in LABELLED_KINDS else {}
    return [
        (labels.get(name, name), _shown(entry.before, name), _shown(entry.after, name))
        for name in names
    ]


def _shown(values: Any, name: str) -> str | None:
    if values is None or name not in values:
        return None
    value = values[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"


PAGES = (view("/audit", table),)
