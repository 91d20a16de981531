"""The audit log: who changed what and when, newest first, each change with the values before and
after.
"""

import json
from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.configuration.operations import in_words, operation_changes
from greenroom.model.change import AuditEntry
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

PER_PAGE = 50
VALUE_SHOWN = 2_000


class AuditLine(NamedTuple):
    """(field, before, after), each as text or None."""

    entry: AuditEntry
    words: str
    differing: list[tuple[str, str | None, str | None]]


def table(page: PageRequest) -> Response:
    asked = page.query("before")
    before = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 16 else None
    found = page.config.store.audit(PER_PAGE + 1, before)
    lines = [AuditLine(entry, _words(entry), _differing(entry)) for entry in found[:PER_PAGE]]
    return page.render(
        "audit.html",
        lines=lines,
        older=found[PER_PAGE - 1].number if len(found) > PER_PAGE else None,
        newest=before is None,
    )


def _words(entry: AuditEntry) -> str:
    if entry.kind == "operation":
        told = [in_words(kind, after, entry.name) for kind, _, after in operation_changes(entry)]
        return ", ".join(filter(None, told)) or f"changed operations of {entry.name}"
    return f"{entry.action} {entry.kind.replace('_', ' ')} {entry.name}"


def _differing(entry: AuditEntry) -> list[tuple[str, str | None, str | None]]:
    before, after = entry.before or {}, entry.after or {}
    names = [
        name
        for name in {**before, **after}
        if before.get(name) != after.get(name) or entry.action != "changed"
    ]
    return [(name, _shown(entry.before, name), _shown(entry.after, name)) for name in names]


def _shown(values: Any, name: str) -> str | None:
    if values is None or name not in values:
        return None
    value = values[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"


PAGES = (view("/audit", table),)
