"""Compiles rooms whose settings, events, rules or lists have changed. What fails is named in
`faults` and stops nothing else: a room holds its visitors, a list or rule is left out, the built-in
page replaces a template.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from greenroom.admission.decide import WELL_KNOWN_RULE
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.served import held_room, served_hosts
from greenroom.configuration.layers import UnitFault
from greenroom.decision.native_pass import no_pass_because, pass_writer
from greenroom.decision.room_schedule import Bypass, RoomSchedule, compile_room
from greenroom.decision.room_table import RoomTable
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.ledgers.port import DrawStore
from greenroom.model.crawler import SEARCH
from greenroom.model.room import ANY_PASS, Room
from greenroom.model.rule import Rule, RuleList
from greenroom.model.visit import Arrival
from greenroom.pages import template_problems
from greenroom.rules import (
    NOTHING_KNOWN,
    BypassRules,
    ListMembership,
    Lookups,
    compile_bypass,
    compile_lists,
    rule_problems,
)
from greenroom.runtime.ledger_store import OpenRoom
from greenroom.runtime.loops import OnError, WorkPieces

SEARCH_ENGINES = (
    Rule(id="search_engine_crawler_bypass", expression=f'cf.verified_bot_category == "{SEARCH}"'),
)


_NAMED = re.compile(r"\$([a-z0-9_]+)")


def rules_of(config: ProcessConfig, room: Room) -> tuple[Rule, ...]:
    settings = config.settings_of(room)
    added = (
        *(SEARCH_ENGINES if settings.search_engine_crawler_bypass else ()),
        *((WELL_KNOWN_RULE,) if settings.pass_well_known else ()),
    )
    return (*config.documents.rules_of(room.id), *added)


class MadeRoom(NamedTuple):
    """Lazy rules may add to what was left out."""

    made_of: tuple[Any, ...]
    schedule: RoomSchedule
    faults: list[UnitFault]


class Compilation(NamedTuple):
    """What rooms are compiled from. `rules_later`: each rule at its first request, or in spare time."""

    config: ProcessConfig
    ledgers: Mapping[str, OpenRoom]
    now_ms: int
    lookups: Lookups
    rules_later: bool = False


class RoomCompiler:
    def __init__(
        self,
        draws: DrawStore,
        on_error: OnError,
        rule_failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`rule_failed` receives the room's id."""
        self._draws = draws
        self._on_error = on_error
        self._rule_failed = rule_failed
        self._lists: dict[str, tuple[RuleList, ListMembership]] = {}
        self._rooms: dict[str, MadeRoom] = {}
        self._lists_ahead: dict[str, tuple[RuleList, ListMembership]] = {}
        self._rooms_ahead: dict[str, MadeRoom] = {}
        self._list_faults: list[UnitFault] = []
        self._asleep: list[LazyRules] = []
        self.unfinished = False
        """A disk or a database may answer again."""

    @property
    def faults(self) -> list[UnitFault]:
        return [
            *self._list_faults,
            *(fault for made in self._rooms.values() for fault in made.faults),
        ]

    async def compile_ahead(self, work: Compilation) -> None:
        """Yields between rooms, so that visitors are served. `table` reports failures."""
        pieces = WorkPieces()
        for found in work.config.lists:
            with contextlib.suppress(Exception):
                self._lists_ahead[found.name] = self._compiled_list(found)
            await pieces.breathe()
        memberships = {name: membership for name, (_, membership) in self._lists_ahead.items()}
        for room in work.config.rooms:
            with contextlib.suppress(Exception):
                self._rooms_ahead[room.id] = self._room(work, room, memberships)
            await pieces.breathe()

    def table(self, work: Compilation, *, strict: bool = False) -> RoomTable:
        """Raises InvalidConfig only if `strict`, for a new failure, leaving the running table as it
        is.
        """
        try:
            return self._table(work, strict)
        finally:
            self._lists_ahead, self._rooms_ahead = {}, {}

    def _table(self, work: Compilation, strict: bool) -> RoomTable:
        lists, list_faults = self._compiled_lists(work.config.lists)
        memberships = {name: membership for name, (_, membership) in lists.items()}
        rooms, unfinished = {}, False
        for room in work.config.rooms:
            try:
                made = self._room(work, room, memberships)
            except Exception as error:
                unfinished = unfinished or isinstance(error, StorageFailed)
                made = self._held(work, room, error)
            rooms[room.id] = made
        if strict:
            known = self.faults
            found = [*list_faults, *(fault for made in rooms.values() for fault in made.faults)]
            if new := [fault.problem for fault in found if fault not in known]:
                raise InvalidConfig(new)
        self._lists, self._rooms = lists, rooms
        self._list_faults, self.unfinished = list_faults, unfinished
        return RoomTable((made.schedule for made in rooms.values()), served_hosts(work.config))

    def _held(self, work: Compilation, room: Room, error: Exception) -> MadeRoom:
        """The running room while a disk fails, else one that holds its visitors."""
        config, ledger = work.config, work.ledgers[room.id].ledger
        faults = _unit_faults(config, room, error)
        known = self._rooms.get(room.id)
        if (
            isinstance(error, StorageFailed)
            and known
            and known.made_of
            and known.schedule.now.ledger is ledger
            and known.schedule.now.room.routes == room.routes
        ):
            return MadeRoom((), known.schedule, faults)
        if not isinstance(error, (InvalidConfig, StorageFailed)):
            self._on_error(error)
        schedule = compile_room(
            held_room(room),
            (),
            work.now_ms,
            ledger,
            always_use_https=config.settings_of(room).always_use_https,
            draws=self._draws,
            on_error=self._on_error,
        )
        return MadeRoom((), schedule, faults)

    def catch_up(self) -> bool:
        """False when none are left."""
        if self._asleep:
            self._asleep.pop().wake()
        return bool(self._asleep)

    def _compiled_lists(
        self, lists: Iterable[RuleList]
    ) -> tuple[dict[str, tuple[RuleList, ListMembership]], list[UnitFault]]:
        compiled: dict[str, tuple[RuleList, ListMembership]] = {}
        faults = []
        for found in lists:
            try:
                compiled[found.name] = self._compiled_list(found)
            except Exception as error:
                faults += [UnitFault(f"list {found.name}", reason) for reason in _reasons(error)]
        return compiled, faults

    def _compiled_list(self, found: RuleList) -> tuple[RuleList, ListMembership]:
        for known in (self._lists_ahead.get(found.name), self._lists.get(found.name)):
            if known and known[0] == found:
                return known
        return found, compile_lists([found])[found.name]

    def _room(self, work: Compilation, room: Room, lists: Mapping[str, ListMembership]) -> MadeRoom:
        config, ledger = work.config, work.ledgers[room.id].ledger
        settings = config.settings_of(room)
        events = config.documents.events_of(room.id)
        rules = tuple(
            rule for rule in rules_of(config, room) if rule is not WELL_KNOWN_RULE
        )  # `decide` knows that one by itself
        named = {
            name: lists[name]
            for rule in rules
            for name in _NAMED.findall(rule.expression)
            if name in lists
        }
        extensions = 0 if over_several(config) else room.session_extensions
        https, well_known = settings.always_use_https, settings.pass_well_known
        made_of: tuple[Any, ...] = (
            room,
            events,
            rules,
            named,
            https,
            well_known,
            config.documents.offers_of(room.id),
            extensions,
            id(ledger),
            id(work.lookups),
        )
        if room.native_pass in ANY_PASS and config.pass_keys is not None:
            made_of += (config.pass_keys, no_pass_because(room, config.pass_keys, config.rooms))
        for known in (self._rooms_ahead.get(room.id), self._rooms.get(room.id)):
            if known and known.made_of == made_of:
                return known
        faults: list[UnitFault] = []
        schedule = compile_room(
            room,
            events,
            work.now_ms,
            ledger,
            always_use_https=settings.always_use_https,
            draws=self._draws,
            on_error=self._on_error,
            bypass=self._bypass(work, room, rules, named, faults),
            passes=lambda stage: pass_writer(
                stage, config.pass_keys, config.rooms, settings.always_use_https
            ),
            passes_well_known=settings.pass_well_known,
            offers=config.documents.offers_of(room.id),
            extensions=extensions,
        )
        if room.custom_page_html and not schedule.now.page.custom:
            wrong = InvalidConfig(template_problems(room.custom_page_html, "custom_page_html"))
            faults += _unit_faults(config, room, wrong)
        return MadeRoom(made_of, schedule, faults)

    def _bypass(
        self,
        work: Compilation,
        room: Room,
        rules: Sequence[Rule],
        lists: Mapping[str, ListMembership],
        faults: list[UnitFault],
    ) -> Bypass | None:
        def failed(error: Exception) -> None:
            self._rule_failed(room.id)
            self._on_error(error)

        def compiled() -> Bypass | None:
            try:
                return bypass(rules, lists, work.lookups, failed)
            except InvalidConfig as error:
                failed(error)
                faults.extend(_unit_faults(work.config, room, error))
            right = [rule for rule in rules if not rule_problems(rule.expression, lists=lists)]
            return bypass(right, lists, work.lookups, failed)

        if not any(rule.enabled for rule in rules):
            return None
        if not work.rules_later:
            return compiled()
        asleep = LazyRules(compiled, failed)
        self._asleep.append(asleep)
        return asleep


def bypass(
    rules: Sequence[Rule],
    lists: Mapping[str, ListMembership],
    lookups: Lookups,
    failed: Callable[[Exception], None],
) -> Bypass | None:
    """None when no rule counts. A rule that fails is passed to `failed`, and lets no visitor by."""
    question: BypassRules = compile_bypass(rules, lists, lambda _, error: failed(error))
    return (
        (lambda arrival, now_ms: question(arrival, now_ms, lookups))
        if any(rule.enabled for rule in rules)
        else None
    )


class LazyRules:
    """If they cannot be compiled, that is reported, and they let no visitor by."""

    __slots__ = ("_compile", "_failed", "_question")

    def __init__(
        self, compile: Callable[[], Bypass | None], failed: Callable[[Exception], None]
    ) -> None:
        self._compile = compile
        self._failed = failed
        self._question: Bypass | None = None

    def __call__(self, arrival: Arrival, now_ms: int) -> Rule | None:
        if self._question is None:
            self.wake()
        return self._question(arrival, now_ms) if self._question else None

    def wake(self) -> None:
        if self._question is not None:
            return
        try:
            self._question = self._compile() or _nobody
        except Exception as error:
            self._failed(error)
            self._question = _nobody


def over_several(config: ProcessConfig) -> bool:
    """Whether several data centers serve the rooms."""
    return config.shared is not None and len(config.shared.data_centers) > 1


def _nobody(_arrival: Arrival, _now_ms: int) -> Rule | None:
    return None


def _unit_faults(config: ProcessConfig, room: Room, error: Exception) -> list[UnitFault]:
    zone = config.zone_of(room)
    return [
        UnitFault(f"room {room.name}", reason, zone.id if zone else "")
        for reason in _reasons(error)
    ]


def _reasons(error: Exception) -> list[str]:
    if isinstance(error, InvalidConfig):
        return [f"{problem.pointer}: {problem.reason}" for problem in error.problems]
    return [str(error) if isinstance(error, StorageFailed) else f"internal error: {error!r:.200}"]


class _NoDraws:
    """A trial must leave no trace."""

    def seed(self, _draw_id: str) -> bytes:
        return bytes(32)

    def settle(self, *_: Any) -> None:
        raise AssertionError("a trial holds no draw")


class _NoLedger:
    ledger: Any = None

    def figures(self, _now_ms: int) -> Any:
        raise AssertionError("a trial has no visitors")


def compile_faults(running: ProcessConfig, wanted: ProcessConfig) -> list[UnitFault]:
    """Blocks."""

    def parts(config: ProcessConfig, room: Room) -> tuple[Any, ...]:
        known = config.documents
        return room, known.events_of(room.id), known.rules_of(room.id), config.zone_of(room)

    before = {room.id: parts(running, room) for room in running.rooms}
    lists_differ = running.lists != wanted.lists
    changed = tuple(
        room
        for room in wanted.rooms
        if before.get(room.id) != parts(wanted, room)
        or (lists_differ and any("$" in rule.expression for rule in rules_of(wanted, room)))
    )
    if not changed and not lists_differ:
        return []
    after = _trial_faults(wanted, changed)
    if not after:
        return []
    ids = {room.id for room in changed}
    known = _trial_faults(running, tuple(room for room in running.rooms if room.id in ids))
    return [fault for fault in after if fault not in known]


def _trial_faults(config: ProcessConfig, rooms: tuple[Room, ...]) -> list[UnitFault]:
    compiler = RoomCompiler(_NoDraws(), lambda _: None)
    ledgers = {room.id: _NoLedger() for room in rooms}
    known = config.documents
    tried = known.with_indexes(
        known.revision, {"room": {one.id: known.rooms[one.id] for one in rooms}}
    )
    compiler.table(Compilation(replace(config, documents=tried), ledgers, 0, NOTHING_KNOWN))
    return compiler.faults
