"""Compiles rooms for the gateway, but only those whose settings, events, rules or lists have changed.

A change to one room of a thousand then costs one room, and the others keep their calendars, with the stage they are at. At the start of
a process rules wait until they are first asked, or until there is time (`catch_up`): they were tried when they were saved, and a
thousand rooms of them would take longer to compile than everything else.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from greenroom.config.layers import served_hosts
from greenroom.config.settings import Config
from greenroom.core.decide import WELL_KNOWN_RULE
from greenroom.core.rules import BypassRules, ListMembership, Lookups, compile_bypass, compile_lists
from greenroom.decision.native_pass import no_pass_because, pass_writer
from greenroom.decision.room_schedule import Bypass, RoomSchedule, compile_room
from greenroom.decision.room_table import RoomTable
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.crawler import SEARCH
from greenroom.model.room import ANY_PASS, Room
from greenroom.model.rule import Rule, RuleList
from greenroom.model.visit import Arrival
from greenroom.ports import DrawStore
from greenroom.runtime.callbacks import OnError
from greenroom.runtime.ledger_store import OpenRoom
from greenroom.runtime.work_pieces import WorkPieces

SEARCH_ENGINES = (
    Rule(id="search_engine_crawler_bypass", expression=f'cf.verified_bot_category == "{SEARCH}"'),
)
"""The setting search_engine_crawler_bypass is a rule of every room it holds for."""


_NAMED = re.compile(r"\$([a-z0-9_]+)")


def rules_of(config: Config, room: Room) -> tuple[Rule, ...]:
    """Every rule of a room: its own, and what settings add."""
    settings = config.zones.get(room.id, config)
    added = (
        *(SEARCH_ENGINES if settings.search_engine_crawler_bypass else ()),
        *((WELL_KNOWN_RULE,) if settings.pass_well_known else ()),
    )
    return (*config.rules.get(room.id, ()), *added)


class RoomCompiler:
    """What it made for the running table is used again where nothing behind it changed."""

    def __init__(
        self,
        draws: DrawStore,
        on_error: OnError,
        rule_failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`rule_failed` is told the id of a room each time one of its rules cannot be evaluated."""
        self._draws = draws
        self._on_error = on_error
        self._rule_failed = rule_failed
        self._lists: dict[str, tuple[RuleList, ListMembership]] = {}
        self._rooms: dict[str, tuple[tuple[Any, ...], RoomSchedule]] = {}
        self._lists_ahead: dict[str, tuple[RuleList, ListMembership]] = {}
        self._rooms_ahead: dict[str, tuple[tuple[Any, ...], RoomSchedule]] = {}
        self._asleep: list[LazyRules] = []

    async def compile_ahead(
        self, config: Config, ledgers: Mapping[str, OpenRoom], now_ms: int, lookups: Lookups
    ) -> None:
        """Compiles what `table` is about to need, piece by piece: visitors are served in between. What is wrong, `table` tells.

        The next call of `table` uses it, or drops it.
        """
        pieces = WorkPieces()
        for found in config.lists:
            with contextlib.suppress(InvalidConfig):
                self._lists_ahead[found.name] = self._compiled_list(found)
            await pieces.breathe()
        memberships = {name: membership for name, (_, membership) in self._lists_ahead.items()}
        for room in config.rooms:
            with contextlib.suppress(InvalidConfig):
                self._rooms_ahead[room.id] = self._room(
                    config, room, ledgers[room.id], memberships, now_ms, lookups, False
                )
            await pieces.breathe()

    def table(
        self,
        config: Config,
        ledgers: Mapping[str, OpenRoom],
        now_ms: int,
        lookups: Lookups,
        *,
        rules_later: bool = False,
    ) -> RoomTable:
        """Every room of the configuration with its ledger; the one reference that a change swaps.

        Raises InvalidConfig, or StorageFailed when the seed of a draw cannot be had; the running table is not touched.
        """
        try:
            return self._table(config, ledgers, now_ms, lookups, rules_later)
        finally:
            self._lists_ahead, self._rooms_ahead = {}, {}

    def _table(
        self,
        config: Config,
        ledgers: Mapping[str, OpenRoom],
        now_ms: int,
        lookups: Lookups,
        rules_later: bool,
    ) -> RoomTable:
        lists = self._compiled_lists(config.lists)
        memberships = {name: membership for name, (_, membership) in lists.items()}
        rooms, problems = {}, []
        for room in config.rooms:
            try:
                rooms[room.id] = self._room(
                    config, room, ledgers[room.id], memberships, now_ms, lookups, rules_later
                )
            except InvalidConfig as error:
                problems += [
                    Problem(f"room {room.name}: {problem.pointer}", problem.reason)
                    for problem in error.problems
                ]
        if problems:
            raise InvalidConfig(problems)
        self._lists, self._rooms = lists, rooms
        return RoomTable((schedule for _, schedule in rooms.values()), served_hosts(config))

    def catch_up(self) -> bool:
        """Compiles the rules of one room that has had no request yet; False when there are none left."""
        if self._asleep:
            self._asleep.pop().wake()
        return bool(self._asleep)

    def _compiled_lists(
        self, lists: Iterable[RuleList]
    ) -> dict[str, tuple[RuleList, ListMembership]]:
        compiled: dict[str, tuple[RuleList, ListMembership]] = {}
        problems = []
        for found in lists:
            try:
                compiled[found.name] = self._compiled_list(found)
            except InvalidConfig as error:
                problems += [
                    Problem(f"list {found.name}: {problem.pointer}", problem.reason)
                    for problem in error.problems
                ]
        if problems:
            raise InvalidConfig(problems)
        return compiled

    def _compiled_list(self, found: RuleList) -> tuple[RuleList, ListMembership]:
        for known in (self._lists_ahead.get(found.name), self._lists.get(found.name)):
            if known and known[0] == found:
                return known
        return found, compile_lists([found])[found.name]

    def _room(
        self,
        config: Config,
        room: Room,
        ledgers: OpenRoom,
        lists: Mapping[str, ListMembership],
        now_ms: int,
        lookups: Lookups,
        rules_later: bool,
    ) -> tuple[tuple[Any, ...], RoomSchedule]:
        """(everything it was made of, the room)."""
        settings = config.zones.get(room.id, config)
        events = config.events.get(room.id, ())
        rules = tuple(
            rule for rule in rules_of(config, room) if rule is not WELL_KNOWN_RULE
        )  # `decide` knows that one by itself
        named = {
            name: lists[name]
            for rule in rules
            for name in _NAMED.findall(rule.expression)
            if name in lists
        }
        https, well_known = settings.always_use_https, settings.pass_well_known
        made_of: tuple[Any, ...] = (
            room,
            events,
            rules,
            named,
            https,
            well_known,
            id(ledgers.ledger),
            id(lookups),
        )
        if room.native_pass in ANY_PASS and config.pass_keys is not None:
            made_of += (config.pass_keys, no_pass_because(room, config.pass_keys, config.rooms))
        for known in (self._rooms_ahead.get(room.id), self._rooms.get(room.id)):
            if known and known[0] == made_of:
                return known
        schedule = compile_room(
            room,
            events,
            now_ms,
            ledgers.ledger,
            always_use_https=settings.always_use_https,
            draws=self._draws,
            on_error=self._on_error,
            bypass=self._bypass(room.id, rules, named, lookups, rules_later),
            passes=lambda stage: pass_writer(
                stage, config.pass_keys, config.rooms, settings.always_use_https
            ),
            passes_well_known=settings.pass_well_known,
        )
        return made_of, schedule

    def _bypass(
        self,
        room_id: str,
        rules: Sequence[Rule],
        lists: Mapping[str, ListMembership],
        lookups: Lookups,
        later: bool,
    ) -> Bypass | None:
        def failed(error: Exception) -> None:
            self._rule_failed(room_id)
            self._on_error(error)

        if not any(rule.enabled for rule in rules):
            return None
        if not later:
            return bypass(rules, lists, lookups, failed)
        asleep = LazyRules(lambda: bypass(rules, lists, lookups, failed), failed)
        self._asleep.append(asleep)
        return asleep


def bypass(
    rules: Sequence[Rule],
    lists: Mapping[str, ListMembership],
    lookups: Lookups,
    failed: Callable[[Exception], None],
) -> Bypass | None:
    """What lets by in one room; None when no rule counts. A rule that fails is told to `failed`, and lets no visitor by."""
    question: BypassRules = compile_bypass(rules, lists, lambda _, error: failed(error))
    return (
        (lambda arrival, now_ms: question(arrival, now_ms, lookups))
        if any(rule.enabled for rule in rules)
        else None
    )


class LazyRules:
    """Rules that are compiled when the first visitor comes. If they cannot be, that is told, and they let no visitor by."""

    __slots__ = ("_compile", "_failed", "_question")

    def __init__(
        self, compile: Callable[[], Bypass | None], failed: Callable[[Exception], None]
    ) -> None:
        self._compile = compile
        self._failed = failed
        self._question: Bypass | None = None

    def __call__(self, arrival: Arrival, now_ms: int) -> Rule | None:
        """See `Bypass`."""
        if self._question is None:
            self.wake()
        return self._question(arrival, now_ms) if self._question else None

    def wake(self) -> None:
        """Compiles them, once."""
        if self._question is not None:
            return
        try:
            self._question = self._compile()
        except InvalidConfig as error:
            self._failed(error)
            self._question = _nobody


def _nobody(_arrival: Arrival, _now_ms: int) -> Rule | None:
    return None
