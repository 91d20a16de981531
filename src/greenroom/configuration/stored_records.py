"""Decodes stored records. One that cannot be read affects no other: a zone or room is assembled
from what is readable and holds its visitors; others are left out.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_type_hints

import msgspec

from greenroom.errors import GreenroomError, InvalidConfig, Problem, StorageFailed
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.model.configuration import KINDS, SEALED_KINDS, Configuration, Entry, Unusable
from greenroom.model.fields import is_sealed, stand_in
from greenroom.model.room import Room
from greenroom.model.zone import NO_ORIGIN, Zone


class SealedFields:
    """Seals the secret fields of records for storage; in memory secrets are plain."""

    def __init__(self, secrets: SealedSecrets | None = None) -> None:
        """None: secrets are stored as they are. Its methods block on a disk."""
        self._secrets = secrets

    def sealed(self, kind: str, record: Any) -> Any:
        """The record for storage. Raises StorageFailed without a key, if none can be made."""
        secrets, closed = self._secrets, {}
        if secrets is None:
            return record
        try:
            for name, text in _secrets(kind, record):
                if not is_sealed(text):
                    closed[name] = secrets.seal(text, _owner(kind, record.id, name))
        except InvalidConfig as error:
            raise StorageFailed(f"secrets cannot be sealed: {error}") from None
        return replace(record, **closed) if closed else record

    def opened(self, kind: str, record: Any) -> Any:
        """Fields that cannot be opened here stay sealed."""
        plain = {}
        for name, text in _secrets(kind, record):
            if self._secrets is not None and is_sealed(text):
                try:
                    plain[name] = self._secrets.open(text, _owner(kind, record.id, name))
                except GreenroomError:
                    continue
        return replace(record, **plain) if plain else record


def unreadable(kind: str, record: Any) -> bool:
    return any(is_sealed(text) for _, text in _secrets(kind, record))


def unsealed(kind: str, record: Any) -> bool:
    return any(not is_sealed(text) for _, text in _secrets(kind, record))


def _secrets(kind: str, record: Any) -> list[tuple[str, str]]:
    return [(name, text) for name in SEALED_KINDS.get(kind, ()) if (text := getattr(record, name))]


def _owner(kind: str, record_id: str, name: str) -> str:
    """Secrets of accounts were the first and are bound to the id alone."""
    return record_id if kind == "account" else f"{kind} {record_id} {name}"


REASON_MAX = 1_000


def with_rows(
    known: Configuration,
    revision: int,
    rows: Iterable[Any],
    removed: Iterable[tuple[str, str]] = (),
) -> Configuration:
    """Never fails. A row is a mapping of kind, id, parent, created_ms, modified_ms, revision, and
    body (JSON).
    """
    put: dict[tuple[str, str], Entry[Any]] = {}
    lost: dict[tuple[str, str], Entry[Any]] = {}
    for row in rows:
        key = row["kind"], row["id"]
        try:
            put[key] = _entry(row, _record(*key, row["body"]))
        except InvalidConfig as error:
            instead = _stand_in(*key, row["body"])
            name = str(getattr(instead, "name", ""))
            reason = "; ".join(found.reason for found in error.problems)[:REASON_MAX]
            lost[key] = _entry(row, Unusable(row["id"], name, reason))
            if instead is not None:
                put[key] = _entry(row, instead)
    gone = {*removed, *(key for key in lost if key not in put)}
    found = known.changed(revision, put.values(), gone, lost)
    return _with_parents(found, put)


def _with_parents(found: Configuration, put: Mapping[tuple[str, str], Entry[Any]]) -> Configuration:
    zones: dict[tuple[str, str], Entry[Any]] = {}
    lost: dict[tuple[str, str], Entry[Any]] = {}
    for (kind, _), entry in put.items():
        if kind == "room" and entry.parent not in found.zones:
            key = "zone", entry.parent
            zone = Zone(id=entry.parent, name=_no_name(entry.parent), origin=NO_ORIGIN)
            reason = "is not in the store, but rooms that belong to it are"
            zones[key] = Entry(zone, "", 0, 0, 0)
            lost[key] = Entry(Unusable(zone.id, "", reason), "", 0, 0, 0)
    if zones:
        found, lost = found.changed(found.revision, zones.values(), (), lost), {}
    for key, entry in put.items():  # of those left out here, none has children
        above = KINDS[key[0]].parent
        if above and entry.parent not in found.index_of(above):
            name = str(getattr(entry.record, "name", ""))
            reason = f"belongs to {above} {entry.parent}, which is not there"
            lost[key] = replace(entry, record=Unusable(entry.id, name, reason))
    return found.changed(found.revision, (), lost, lost) if lost else found


def _entry(row: Mapping[str, Any], record: Any) -> Entry[Any]:
    return Entry(record, row["parent"], row["created_ms"], row["modified_ms"], row["revision"])


def _record(kind: str, id: str, body: str | bytes) -> Any:
    """Raises InvalidConfig when it cannot be read."""
    if kind not in KINDS:
        raise _unreadable("this greenroom does not know this kind of record")
    try:
        record = msgspec.json.decode(body, type=KINDS[kind].record)
    except InvalidConfig as error:
        reasons = [f"{found.pointer}: {found.reason}" for found in error.problems]
        raise _unreadable("; ".join(reasons)) from None
    except Exception as error:
        raise _unreadable(f"cannot be understood as it is stored: {error}") from None
    if record.id != id:
        raise _unreadable(f"cannot be understood as it is stored: its id is not {id}")
    return record


def _unreadable(reason: str) -> InvalidConfig:
    return InvalidConfig([Problem("", reason)])


def _stand_in(kind: str, id: str, body: str | bytes) -> Any:
    if kind == "zone":
        named = {"name": _no_name(id), "origin": NO_ORIGIN}
        return stand_in(Zone, _converted(Zone, body), named, {"id": id})
    if kind != "room":
        return None
    name = f"unreadable-{_hex(id)}"
    least = {"name": name, "total_active_users": 1, "new_users_per_minute": 1}
    always = {"id": id, "queue_all": True}
    return stand_in(Room, _converted(Room, body), least, always, needed=("host", "path"))


def _converted(form: type[Any], body: str | bytes) -> dict[str, Any]:
    hints = get_type_hints(form)
    values: dict[str, Any] = {}
    for name, value in _fields(body).items():
        with contextlib.suppress(Exception):  # a wrong field of any kind is left out
            values[name] = msgspec.convert(value, hints[name])
    return values


def _fields(body: str | bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except Exception:
        text = body if isinstance(body, str) else body.decode("utf-8", "replace")
        whole = re.findall(r'[{,]\s*"(name|host|path|origin)"\s*:\s*"([^"\\]*)"', text)
        # of several the first: branding and routes stand behind
        return dict(reversed(whole))
    return found if isinstance(found, dict) else {}


def _no_name(zone_id: str) -> str:
    """RFC 6761."""
    return f"{_hex(zone_id)}.invalid"


def _hex(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()[:32]
