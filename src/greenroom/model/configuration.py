"""The whole configuration as one immutable value at one revision. A new revision shares unchanged
indexes and entries with its predecessor, so `is` tells what has to be compiled again.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, cast

from greenroom.model.account import Account, Token
from greenroom.model.event import Event
from greenroom.model.fields import specs
from greenroom.model.health_check import HealthCheck
from greenroom.model.notification import (
    AlertPolicy,
    IncidentNote,
    PagerdutyService,
    Silence,
    Webhook,
)
from greenroom.model.offer import Offer, OfferSet
from greenroom.model.operation import RoomOperations, operated
from greenroom.model.room import Room
from greenroom.model.rule import ListItem, Rule, RuleList, RuleSet
from greenroom.model.status_page import StatusPage
from greenroom.model.zone import Zone

Record = (
    Zone
    | Room
    | Event
    | RoomOperations
    | RuleSet
    | OfferSet
    | HealthCheck
    | RuleList
    | ListItem
    | Token
    | Webhook
    | PagerdutyService
    | AlertPolicy
    | Silence
    | IncidentNote
    | StatusPage
    | Account
)
R = TypeVar("R", bound=Record)


class RecordKind(NamedTuple):
    """`secret`: fields which the audit log omits; `compiled`: processes compile such records."""

    record: type[Any]
    parent: str = ""
    secret: tuple[str, ...] = ()
    compiled: bool = False

    @property
    def sealed(self) -> tuple[str, ...]:
        """Hashes need no seal."""
        rules = specs(self.record)
        return tuple(name for name in self.secret if rules[name].sealed)


KINDS: Mapping[str, RecordKind] = {
    "zone": RecordKind(Zone, compiled=True),
    "room": RecordKind(Room, "zone", compiled=True),
    "event": RecordKind(Event, "room", compiled=True),
    "rules": RecordKind(RuleSet, "room", compiled=True),
    "offers": RecordKind(OfferSet, "room"),
    "health_check": RecordKind(HealthCheck, "zone", compiled=True),
    "operation": RecordKind(RoomOperations),
    "list": RecordKind(RuleList, compiled=True),
    "list_item": RecordKind(ListItem, "list", compiled=True),
    "token": RecordKind(Token, secret=("secret_sha256",)),
    "webhook": RecordKind(Webhook, secret=("url", "secret")),
    "pagerduty_service": RecordKind(PagerdutyService, secret=("routing_key",)),
    "alert_policy": RecordKind(AlertPolicy),
    "silence": RecordKind(Silence),
    "incident_note": RecordKind(IncidentNote),
    "status_page": RecordKind(StatusPage, compiled=True),
    "account": RecordKind(Account, secret=("password_hash", "totp_secret", "recovery_sha256")),
}
"""Parents before children. RuleSet, OfferSet and RoomOperations have their room's id; operations have
no parent, because the room may be in a configuration file.
"""

SEALED_KINDS: Mapping[str, tuple[str, ...]] = {
    name: kind.sealed for name, kind in KINDS.items() if kind.sealed
}

KIND_WORDS: Mapping[str, str] = {kind: kind.replace("_", " ") for kind in KINDS} | {
    "room": "waiting room"
}
"""As messages name them."""

KIND_OF: Mapping[type, str] = {kind.record: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Entry(Generic[R]):
    """`revision` last changed it; `read_only`: from a configuration file."""

    record: R
    parent: str
    created_ms: int
    modified_ms: int
    revision: int
    read_only: bool = False

    @property
    def id(self) -> str:
        return self.record.id


@dataclass(frozen=True, slots=True)
class Unusable:
    """The record stays in the store as it is."""

    id: str
    name: str
    reason: str


class EntryIndex(Mapping[str, Entry[R]]):
    __slots__ = ("_by_id", "_by_parent")

    def __init__(self, entries: Mapping[str, Entry[R]]) -> None:
        self._by_id = entries
        self._by_parent: dict[str, list[Entry[R]]] | None = None

    def __getitem__(self, id: str) -> Entry[R]:
        return self._by_id[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def of(self, parent: str) -> list[Entry[R]]:
        """Oldest first; do not change the list."""
        if self._by_parent is None:
            grouped: dict[str, list[Entry[R]]] = {}
            for entry in self._by_id.values():
                grouped.setdefault(entry.parent, []).append(entry)
            self._by_parent = grouped
        return self._by_parent.get(parent, [])

    def records(self) -> Iterator[R]:
        return (entry.record for entry in self._by_id.values())


def _empty_index() -> EntryIndex[Any]:
    return EntryIndex({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The store accepts a change only while the Configuration it was planned on is the newest."""

    revision: int = 0
    zones: EntryIndex[Zone] = field(default_factory=_empty_index)
    rooms: EntryIndex[Room] = field(default_factory=_empty_index)
    events: EntryIndex[Event] = field(default_factory=_empty_index)
    rules: EntryIndex[RuleSet] = field(default_factory=_empty_index)
    offers: EntryIndex[OfferSet] = field(default_factory=_empty_index)
    health_checks: EntryIndex[HealthCheck] = field(default_factory=_empty_index)
    operations: EntryIndex[RoomOperations] = field(default_factory=_empty_index)
    lists: EntryIndex[RuleList] = field(default_factory=_empty_index)
    list_items: EntryIndex[ListItem] = field(default_factory=_empty_index)
    tokens: EntryIndex[Token] = field(default_factory=_empty_index)
    webhooks: EntryIndex[Webhook] = field(default_factory=_empty_index)
    pagerduty_services: EntryIndex[PagerdutyService] = field(default_factory=_empty_index)
    alert_policies: EntryIndex[AlertPolicy] = field(default_factory=_empty_index)
    silences: EntryIndex[Silence] = field(default_factory=_empty_index)
    incident_notes: EntryIndex[IncidentNote] = field(default_factory=_empty_index)
    status_pages: EntryIndex[StatusPage] = field(default_factory=_empty_index)
    accounts: EntryIndex[Account] = field(default_factory=_empty_index)
    unusable: Mapping[tuple[str, str], Entry[Any]] = field(default_factory=dict)
    """By (kind, id). The indexes of zones and rooms have what can be read of them."""

    def room_in_operation(self, room_id: str) -> Room:
        found = self.operations.get(room_id)
        return operated(self.rooms[room_id].record, found.record if found else None)

    def events_of(self, room_id: str) -> tuple[Event, ...]:
        return tuple(entry.record for entry in self.events.of(room_id))

    def rules_of(self, room_id: str) -> tuple[Rule, ...]:
        entry = self.rules.get(room_id)
        return entry.record.rules if entry else ()

    def offers_of(self, room_id: str) -> tuple[Offer, ...] | None:
        """None: a room without offers; empty: it has none now."""
        entry = self.offers.get(room_id)
        return entry.record.offers if entry else None

    def notifying(
        self, alert_types: Container[str], about: Mapping[str, Collection[str]]
    ) -> list[Entry[AlertPolicy]]:
        """The policies that would notify somebody of such an alert about a subject with the values
        of `about`, by filter.
        """
        present = {*self.webhooks, *self.pagerduty_services}
        return [
            entry
            for entry in self.alert_policies.values()
            if (policy := entry.record).enabled
            and policy.alert_type in alert_types
            and policy.passes(about)
            and (policy.emails or not present.isdisjoint(policy.webhook_ids + policy.pagerduty_ids))
        ]

    def index_of(self, kind: str) -> EntryIndex[Any]:
        return cast(EntryIndex[Any], getattr(self, _INDEXES[kind]))

    def entries(self) -> Iterator[tuple[str, Entry[Any]]]:
        """Parents before children."""
        for kind in KINDS:
            for entry in self.index_of(kind).values():
                yield kind, entry

    def changed(
        self,
        revision: int,
        put: Iterable[Entry[Any]],
        removed: Iterable[tuple[str, str]] = (),
        unusable: Mapping[tuple[str, str], Entry[Any]] = MappingProxyType({}),
    ) -> "Configuration":
        """First drops `removed`, then adds or replaces `put`, then notes `unusable`."""
        lost = dict(self.unusable)
        indexes: dict[str, dict[str, Entry[Any]]] = {}

        def opened(kind: str) -> dict[str, Entry[Any]]:
            if kind not in indexes:
                indexes[kind] = dict(self.index_of(kind))
            return indexes[kind]

        for kind, gone in removed:
            lost.pop((kind, gone), None)
            if kind in KINDS:
                opened(kind).pop(gone, None)
        for entry in put:
            kind = KIND_OF[type(entry.record)]
            lost.pop((kind, entry.id), None)
            opened(kind)[entry.id] = entry
        return replace(self.with_indexes(revision, indexes), unusable={**lost, **unusable})

    def with_indexes(
        self, revision: int, indexes: Mapping[str, Mapping[str, Entry[Any]]]
    ) -> "Configuration":
        made = {
            kind: found if isinstance(found, EntryIndex) else EntryIndex(found)
            for kind, found in indexes.items()
        }
        fields: dict[str, Any] = {_INDEXES[kind]: index for kind, index in made.items()}
        return replace(self, revision=revision, **fields)

    def below(self, kind: str, id: str) -> list[tuple[str, str]]:
        """Parents before children."""
        found = []
        for name, described in KINDS.items():
            if described.parent == kind:
                for entry in self.index_of(name).of(id):
                    found += [(name, entry.id), *self.below(name, entry.id)]
        return found

    def rule_list(self, entry: Entry[RuleList]) -> RuleList:
        """With its items, for the rules language."""
        items = tuple(item.record.value for item in self.list_items.of(entry.id))
        return replace(entry.record, items=items)


_PLURALS = {"rules": "rules", "offers": "offers", "alert_policy": "alert_policies"}
_INDEXES: Mapping[str, str] = {kind: _PLURALS.get(kind, f"{kind}s") for kind in KINDS}
