"""Items of a list, changed in bulk. Operations are complete when they are answered."""

import base64
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_interface
from typing import Any, NamedTuple

from greenroom.configuration.lists import list_of
from greenroom.model.change import Change, Put, Remove
from greenroom.model.configuration import Configuration, Entry, EntryIndex
from greenroom.model.fields import field_problems, spec
from greenroom.model.route import as_host
from greenroom.model.rule import LIST_ITEMS_MAX, ListItem
from greenroom.rules.lists import item_problem
from greenroom.web.api_schema import ApiSchema, computed, read_as
from greenroom.web.api_shapes import (
    Json,
    Nested,
    Plain,
    Shown,
)
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    not_found,
    refuse_if,
    within,
)
from greenroom.web.time_format import plain_moment

PER_PAGE_MAX = 500
FAULTS_MAX = 100
"""A wrong file could have a hundred thousand."""

OPERATIONS_MAX = 1_000
"""Clients ask within seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostname:
    url_hostname: str = spec(
        "host name; a leading `*.` matches every name below it", low=1, high=255
    )
    exclude_exact_hostname: bool | None = spec(
        "with `*.`: exclude the name itself. Always true; add the name as a separate item",
        None,
        nullable=True,
    )


_TIME = {"type": "string", "format": "date-time"}

ITEM = ApiSchema(
    (
        computed("id", "opaque identifier, unique", Shown({"type": "string"})),
        computed(
            "ip",
            "address or network, for lists of kind ip",
            Plain(str),
            writable=True,
            example="10.20.30.40",
        ),
        computed(
            "hostname", "host name, for lists of kind hostname", Nested(Hostname), writable=True
        ),
        computed(
            "asn",
            "number of an autonomous system, for lists of kind asn",
            Plain(int),
            writable=True,
        ),
        *(
            api_field
            for api_field in ApiSchema.of(
                ListItem, shapes={"comment": Plain(str, or_null=True)}
            ).fields
            if api_field.name == "comment"
        ),
        computed("created_on", "creation time", Shown(_TIME)),
        computed("modified_on", "time of the last change", Shown(_TIME)),
    )
)
VALUES = ("ip", "hostname", "asn")

OPERATION = ApiSchema(
    (
        computed("id", "opaque identifier, unique", Shown({"type": "string"})),
        computed("status", "always completed", Shown({"type": "string", "enum": ["completed"]})),
        computed("completed", "time of the change", Shown(_TIME)),
    )
)

ITEM_DELETION: Json = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}},
                "required": ["id"],
                "additionalProperties": False,
            },
        }
    },
}


class Operations:
    def __init__(self) -> None:
        self._done: OrderedDict[str, int] = OrderedDict()
        self._guard = threading.Lock()

    def add(self, operation_id: str, at_ms: int) -> Json:
        with self._guard:
            self._done[operation_id] = at_ms
            if len(self._done) > OPERATIONS_MAX:
                self._done.popitem(last=False)
        return {"operation_id": operation_id}

    def get(self, operation_id: str) -> Json:
        """Raises Refused for an unknown id."""
        with self._guard:
            at_ms = self._done.get(operation_id)
        if at_ms is None:
            raise not_found("operation", operation_id)
        return {"id": operation_id, "status": "completed", "completed": plain_moment(at_ms)}


class Slice(NamedTuple):
    """Cursors are empty at an end."""

    items: Sequence[Entry[ListItem]]
    before: str
    after: str


class Catalogue:
    """Sorted once for every change instead of every page."""

    def __init__(self) -> None:
        self._sorted: OrderedDict[
            str, tuple[EntryIndex[ListItem], list[tuple[Any, Entry[ListItem]]]]
        ] = OrderedDict()
        self._guard = threading.Lock()

    def slice(
        self, known: Configuration, list_id: str, cursor: str, per_page: int, search: str
    ) -> Slice:
        """An invalid cursor counts as none."""
        kind = list_of(known, list_id).record.kind
        found = [
            pair
            for pair in self._in_order(known, list_id, kind)
            if _matches(kind, pair[1].record.value, search)
        ]
        key = _cursor_key(kind, cursor)
        begin = 0 if key is None else bisect_right(found, key, key=lambda pair: pair[0])
        chosen = [entry for _, entry in found[begin : begin + per_page]]
        before = found[begin - per_page - 1][1] if begin > per_page else None
        return Slice(
            chosen,
            _cursor(before.record.value if before else "") if begin else "",
            _cursor(chosen[-1].record.value) if begin + per_page < len(found) else "",
        )

    def _in_order(
        self, known: Configuration, list_id: str, kind: str
    ) -> list[tuple[Any, Entry[ListItem]]]:
        with self._guard:
            kept = self._sorted.pop(list_id, None)
            if kept is None or kept[0] is not known.list_items:
                order = _ORDERS[kind]
                pairs = [
                    (order(entry.record.value), entry) for entry in known.list_items.of(list_id)
                ]
                kept = known.list_items, sorted(pairs, key=lambda pair: pair[0])
            self._sorted[list_id] = kept
            if len(self._sorted) > 8:  # lists that clients are reading
                self._sorted.popitem(last=False)
            return kept[1]


def show(kind: str, entry: Entry[ListItem]) -> Json:
    record = entry.record
    value: Any = record.value
    if kind == "asn":
        value = int(value)
    elif kind == "hostname":
        value = {"url_hostname": value} | (
            {"exclude_exact_hostname": True} if value.startswith("*.") else {}
        )
    return {
        "id": record.id,
        kind: value,
        "comment": record.comment or None,
        "created_on": plain_moment(entry.created_ms),
        "modified_on": plain_moment(entry.modified_ms),
    }


def item_of(known: Configuration, list_id: str, item_id: str) -> Json:
    """Raises Refused when there is none."""
    kind = list_of(known, list_id).record.kind
    entry = known.list_items.get(item_id)
    if entry is None or entry.parent != list_id:
        raise not_found("item", item_id)
    return show(kind, entry)


def add(list_id: str, documents: Any, done: Operations, whole: bool) -> ConfigChange:
    """`whole` replaces all. Existing items keep their ids."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        entry = list_of(known, list_id)
        refuse_read_only(entry, "list")
        wanted = _wanted(entry.record.kind, documents)
        there = {entry.record.value: entry.record for entry in known.list_items.of(list_id)}
        total = len(wanted) if whole else len(there.keys() | wanted.keys())
        if total > LIST_ITEMS_MAX:
            raise Refused(
                ApiFault(Code.TOO_MANY, f"a list has at most {LIST_ITEMS_MAX} items, not {total}")
            )
        changes: list[Change] = [
            Remove("list_item", item.id)
            for value, item in there.items()
            if whole and value not in wanted
        ]
        for value, comment in wanted.items():
            item = there.get(value)
            if item is None:
                changes.append(Put(ListItem(id=at.new_id(), value=value, comment=comment), list_id))
            elif item.comment != comment:
                changes.append(Put(replace(item, comment=comment), list_id))
        return PlannedChange(changes, lambda _after: done.add(at.new_id(), at.now_ms))

    return plan


def remove(list_id: str, document: Any, done: Operations) -> ConfigChange:
    """None when no items are named, as official clients may do."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        refuse_read_only(list_of(known, list_id), "list")
        items = document.get("items", []) if isinstance(document, dict) else None
        if not isinstance(items, list) or not all(
            isinstance(item, dict) and isinstance(item.get("id"), str) for item in items
        ):
            raise Refused(
                ApiFault(Code.INVALID, "items: must be a list of objects with id", "/items")
            )
        wanted = list(dict.fromkeys(item["id"] for item in items))
        there = {entry.id for entry in known.list_items.of(list_id)}
        gone = [item_id for item_id in wanted if item_id not in there][:FAULTS_MAX]
        refuse_if(
            ApiFault(Code.NO_OBJECT, f"items: no item {item_id[:64]!r} in this list", "/items")
            for item_id in gone
        )
        return PlannedChange(
            [Remove("list_item", item_id) for item_id in wanted],
            lambda _after: done.add(at.new_id(), at.now_ms),
        )

    return plan


def _wanted(kind: str, documents: Any) -> dict[str, str]:
    """The last duplicate counts. Raises Refused with up to FAULTS_MAX faults."""
    if not isinstance(documents, list):
        raise Refused(ApiFault(Code.BAD_BODY, "the body must be a JSON array of items"))
    wanted: dict[str, str] = {}
    faults: list[ApiFault] = []
    for index, document in enumerate(documents):
        value, comment, wrong = _item(kind, document)
        wanted[value] = comment
        faults += within(wrong, f"/{index}")
        if len(faults) >= FAULTS_MAX:
            break
    refuse_if(faults)
    return wanted


def _item(kind: str, document: Any) -> tuple[str, str, list[ApiFault]]:
    if not isinstance(document, dict):
        return "", "", [ApiFault(Code.INVALID, "must be an object")]
    values, faults = read_as(ITEM, document)
    if not faults and [name for name in VALUES if name in values] != [kind]:
        faults = [ApiFault(Code.INVALID, f"must have only the field {kind}, the kind of the list")]
    if faults:
        return "", "", faults
    at = "/hostname/url_hostname" if kind == "hostname" else f"/{kind}"
    text = _TEXTS[kind](values[kind])
    if text is None:
        return (
            "",
            "",
            [ApiFault(Code.INVALID, f"{kind}: cannot be used: it must be {_WANTED[kind]}", at)],
        )
    text = as_host(text)
    found = field_problems(ListItem, {"value": text, "comment": values["comment"]})
    faults = [
        ApiFault(
            Code.INVALID,
            f"{one.pointer}: {one.reason}",
            "/comment" if one.pointer == "comment" else at,
        )
        for one in found
    ]
    reason = None if found else item_problem(kind, text)
    return (
        text,
        values["comment"],
        faults + ([ApiFault(Code.INVALID, f"{kind}: {reason}", at)] if reason else []),
    )


_TEXTS: dict[str, Callable[[Any], str | None]] = {
    "ip": lambda value: value if isinstance(value, str) else None,
    "asn": lambda value: (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else None
    ),
    "hostname": lambda value: None if value.exclude_exact_hostname is False else value.url_hostname,
}
_WANTED = {
    "ip": "a string",
    "asn": "a whole number",
    "hostname": (
        "a name without exclude_exact_hostname false; add the name itself as a separate item"
    ),
}


def _address(text: str) -> tuple[int, int, int]:
    found = ip_interface(text)
    return found.version, int(found.ip), found.network.prefixlen


_ORDERS: dict[str, Callable[[str], Any]] = {"ip": _address, "asn": int, "hostname": str}


def _matches(kind: str, value: str, search: str) -> bool:
    if not search:
        return True
    sought = search.lower()
    return (
        value == sought
        if kind == "asn"
        else value.startswith(sought)
        if kind == "ip"
        else sought in value
    )


def _cursor(value: str) -> str:
    return base64.urlsafe_b64encode(b"v" + value.encode()).decode().rstrip("=")


def _cursor_key(kind: str, cursor: str) -> Any:
    try:
        found = base64.b64decode(
            cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        ).decode()
        return _ORDERS[kind](found[1:]) if len(found) > 1 and found.startswith("v") else None
    except ValueError:  # also of base64 and UTF-8
        return None
