"""The whole configuration as one document, in the API's forms. It omits defaults, tokens, silences
and notes; a secret is masked and stays where the store knows it. Applying writes the differences at
once, so a second time changes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import tomli_w

from greenroom.configuration import (
    events,
    list_items,
    lists,
    rooms,
    rules,
    zones,
)
from greenroom.configuration.zones import OriginProblems
from greenroom.errors import InvalidConfig
from greenroom.model.change import Change, Put, Remove, Step, applied, name_of, told
from greenroom.model.configuration import KINDS, Configuration, Entry
from greenroom.transfer.plan import BESIDE_ZONES, IN_ZONES, wanted_configuration
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    DocumentSection,
    PlannedChange,
)
from greenroom.web.refusals import ApiFault, Code, Refused

# Writes plain values as readable TOML, which the standard library can only read.


def toml_text(document: Mapping[str, Any]) -> str:
    r"""Omits nulls. TOML may turn `\r\n` in several lines into `\n`, so a document with such a text
    has single lines only.
    """
    plain = _without_nulls(document)
    return tomli_w.dumps(plain, multiline_strings=not _has_crlf(plain))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _has_crlf(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_crlf(inner) for inner in value.values())
    if isinstance(value, list):
        return any(map(_has_crlf, value))
    return isinstance(value, str) and "\r\n" in value


UNTOLD = frozenset({"token", "account", "offers"})
"""Tokens and accounts would give readers access; offers are short-lived."""


def exported(known: Configuration) -> Json:
    own = [entry for entry in known.zones.values() if not entry.read_only]
    return {
        "lists": [_list(known, entry) for entry in known.lists.values() if not entry.read_only],
        "zones": [_zone(known, entry) for entry in own],
        **_sections(known, BESIDE_ZONES),
    }


def _sections(
    known: Configuration, sections: Iterable[DocumentSection], parent: str = ""
) -> dict[str, list[Json]]:
    """Sections with entries."""
    found = {
        section.name: [
            {"id": entry.id, **section.show(entry)}
            for entry in known.index_of(section.kind).of(parent)
            if not entry.read_only
        ]
        for section in sections
    }
    return {name: entries for name, entries in found.items() if entries}


def _list(known: Configuration, entry: Entry[Any]) -> Json:
    kind = entry.record.kind
    items = [list_items.show(kind, item) for item in known.list_items.of(entry.id)]
    short = [
        {kind: item[kind]} | ({"comment": item["comment"]} if item["comment"] else {})
        for item in items
    ]
    return {"id": entry.id, **lists.LIST.brief(lists.show(known, entry)), "items": short}


def _zone(known: Configuration, entry: Entry[Any]) -> Json:
    settings = zones.SETTINGS.brief(zones.settings(entry))
    inside = [_room(known, room) for room in known.rooms.of(entry.id) if not room.read_only]
    return {
        "id": entry.id,
        **zones.ZONE.brief(zones.show(entry), leave_out=("account", "type")),
        **({"settings": settings} if settings else {}),
        "waiting_rooms": inside,
        **_sections(known, IN_ZONES, entry.id),
    }


def _room(known: Configuration, entry: Entry[Any]) -> Json:
    planned = [
        {"id": event.id, **events.EVENT.brief(events.show(event))}
        for event in known.events.of(entry.id)
    ]
    bypass = [
        {"id": rule["id"], **rules.RULE.brief(rule)}
        for rule in rules.show(known.rules_of(entry.id))
    ]
    shown = rooms.ROOM.brief(rooms.show(known, entry, 0))
    return {
        "id": entry.id,
        **shown,
        **({"events": planned} if planned else {}),
        **({"rules": bypass} if bypass else {}),
    }


def make_true(
    document: Any, origin_problems: OriginProblems, *, only_into_empty: bool = False
) -> ConfigChange:
    """Answers a line for each step. Raises Refused with all faults. `only_into_empty`: refuses to
    change or delete anything.
    """

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        wanted = wanted_configuration(known, document, at, origin_problems)
        changes = differences(known, wanted, at.now_ms)
        try:
            after, steps = applied(known, changes, at.now_ms)
        except InvalidConfig as error:
            raise Refused(
                *(ApiFault(Code.TAKEN, problem.reason) for problem in error.problems)
            ) from None
        if only_into_empty and any(step.before for step in steps):
            raise Refused(
                ApiFault(
                    Code.IN_USE,
                    "the store already has a configuration; use `greenroom apply` to change it",
                )
            )
        lines = [
            _line(step, after if step.after else known)
            for step in steps
            if not step.entry.read_only
        ]
        return PlannedChange(changes, lambda _after: lines)

    return plan


def differences(known: Configuration, wanted: Configuration, now_ms: int) -> list[Change]:
    gone = {
        (kind, key)
        for kind in KINDS
        for key in known.index_of(kind)
        if kind not in UNTOLD and key not in wanted.index_of(kind)
    }
    removals: list[Change] = [
        Remove(kind, key)
        for kind, key in sorted(gone)
        if (KINDS[kind].parent, known.index_of(kind)[key].parent) not in gone
    ]
    left, _ = applied(known, removals, now_ms)
    puts: list[Change] = []
    for kind in KINDS:
        index_of = left.index_of(kind)
        for key, entry in wanted.index_of(kind).items():
            old = index_of.get(key)
            if (
                kind not in UNTOLD
                and not entry.read_only
                and (old is None or old.record != entry.record or old.parent != entry.parent)
            ):
                puts.append(Put(entry.record, entry.parent))
    return removals + puts


def _line(step: Step, above: Configuration) -> str:
    before, after = told(step)
    what = f"{_WORDS[step.action]} {step.kind.replace('_', ' ')} {_path(step, above)}"
    if before is None or after is None:
        return what
    return (
        f"{what}:"
        f" {', '.join(f'{key} {_shown(before[key])} -> {_shown(after[key])}' for key in after)}"
    )


_WORDS = {"created": "make", "changed": "change", "removed": "remove"}


def _path(step: Step, above: Configuration) -> str:
    kind, parent, names = step.kind, step.entry.parent, [] if step.kind == "rules" else [step.name]
    while kind := KINDS[kind].parent:
        entry = above.index_of(kind).get(parent)
        if entry is None:
            break
        names.append(name_of(kind, entry.record))
        parent = entry.parent
    return " of ".join(names)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
