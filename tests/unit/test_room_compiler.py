"""Only what changed is compiled again, and rules may wait until they are asked."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from config_material import event, offers, room

from greenroom.config_file.documents import list_entries
from greenroom.config_file.load import read_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.file_tables import file_entry
from greenroom.decision.room_table import RoomTable
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.event import Event
from greenroom.model.offer import Offer, OfferSet
from greenroom.model.room import Room
from greenroom.model.rule import Rule, RuleList, RuleSet
from greenroom.model.visit import Arrival
from greenroom.model.zone import Zone
from greenroom.rules import NOTHING_KNOWN
from greenroom.runtime.room_compiler import Compilation, RoomCompiler, compile_faults

EMPTY = read_config("", Path("/etc/greenroom.toml"))
BOOKS: Any = {
    name: SimpleNamespace(ledger=object(), counts=Counter()) for name in ("r1", "r2", "r3")
}
STAFF = Rule(id="a", expression="ip.src in $staff")
LISTED = RuleList(id="staff", name="staff", kind="ip", items=("10.0.0.0/8",))
OTHER = RuleList(id="other", name="other", kind="ip")


class Shop:
    """A compiler and what went wrong in it."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        draws: Any = None
        self.failed_rules: list[str] = []
        self.compiler = RoomCompiler(draws, self.errors.append, self.failed_rules.append)

    def table(
        self, config: ProcessConfig, *, strict: bool = False, rules_later: bool = False
    ) -> RoomTable:
        work = Compilation(config, BOOKS, 0, NOTHING_KNOWN, rules_later)
        return self.compiler.table(work, strict=strict)


def config(
    *rooms: Room,
    events: Mapping[str, Iterable[Event]] = MappingProxyType({}),
    rules: Mapping[str, tuple[Rule, ...]] = MappingProxyType({}),
    offers: Mapping[str, tuple[Offer, ...]] = MappingProxyType({}),
    lists: Iterable[RuleList] = (),
    zone: Zone | None = None,
    **more: Any,
) -> ProcessConfig:
    """The rooms are the file's, or in `zone`."""
    entries = [
        *([Entry(zone, "", 0, 0, 0)] if zone else []),
        *(Entry(one, zone.id if zone else "", 0, 0, 0, read_only=not zone) for one in rooms),
        *(file_entry(event, key) for key, found in events.items() for event in found),
        *(file_entry(RuleSet(id=key, rules=found), key) for key, found in rules.items()),
        *(file_entry(OfferSet(id=key, offers=found), key) for key, found in offers.items()),
        *list_entries(lists),
    ]
    return replace(EMPTY, documents=Configuration().changed(0, entries), **more)


def arrival(client: str) -> Arrival:
    return Arrival("GET", "https", "r1.z1.example", "/", "", (), client)


async def turns_during(work: Awaitable[Any]) -> int:
    """How often visitors could have been served while this was done."""
    turns = 0
    task = asyncio.ensure_future(work)
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    await task
    return turns


def test_visitors_are_served_while_many_rooms_are_compiled_and_the_table_then_compiles_none() -> (
    None
):
    shop, many = Shop(), [room(f"r{number}", host=f"r{number}.z1.example") for number in range(300)]
    books: Any = {one.id: SimpleNamespace(ledger=object()) for one in many}
    rules = {
        one.id: (Rule(id="a", expression=f'http.host eq "{one.id}" or ip.src in $staff'),)
        for one in many
    }
    whole = config(*many, rules=rules, lists=(LISTED,))
    assert (
        asyncio.run(
            turns_during(shop.compiler.compile_ahead(Compilation(whole, books, 0, NOTHING_KNOWN)))
        )
        > 3
    )
    ahead = {room_id: made.schedule for room_id, made in shop.compiler._rooms_ahead.items()}
    assert shop.compiler.table(Compilation(whole, books, 0, NOTHING_KNOWN)).rooms == ahead


def test_what_is_wrong_with_rooms_compiled_ahead_is_told_at_once_by_the_table() -> None:
    shop = Shop()
    broken = config(
        room("r1"),
        room("r2"),
        rules={"r1": (replace(STAFF, expression="?"),), "r2": (replace(STAFF, expression="!"),)},
    )
    asyncio.run(shop.compiler.compile_ahead(Compilation(broken, BOOKS, 0, NOTHING_KNOWN)))
    shop.table(broken)
    assert [fault.unit for fault in shop.compiler.faults] == ["room r1", "room r2"]


def test_a_room_that_did_not_change_is_the_very_same_afterwards() -> None:
    shop = Shop()
    before = shop.table(config(room("r1"), room("r2"))).rooms
    after = shop.table(config(room("r1"), room("r2", description="new"), room("r3"))).rooms
    assert after["r1"] is before["r1"]
    assert after["r2"] is not before["r2"]
    assert set(after) == {"r1", "r2", "r3"}
    assert set(shop.table(config(room("r2", description="new"))).rooms) == {"r2"}


@pytest.mark.parametrize(
    "more",
    [
        {"rules": {"r1": (replace(STAFF, description="x"),)}, "lists": (LISTED,)},
        {"rules": {"r1": (STAFF,)}, "lists": (replace(LISTED, items=("192.0.2.1",)),)},
        {"rules": {"r1": (STAFF,)}, "lists": (LISTED,), "always_use_https": True},
        {
            "rules": {"r1": (STAFF,)},
            "lists": (LISTED,),
            "zone": Zone(id="z", name="z1.example", always_use_https=True),
        },
        {"rules": {"r1": (STAFF,)}, "lists": (LISTED,), "search_engine_crawler_bypass": True},
    ],
)
def test_everything_a_room_is_made_of_makes_it_again(more: dict[str, Any]) -> None:
    shop = Shop()
    before = shop.table(config(room("r1"), rules={"r1": (STAFF,)}, lists=(LISTED,))).rooms["r1"]
    assert shop.table(config(room("r1"), **more)).rooms["r1"] is not before


def test_a_list_that_no_rule_of_a_room_names_does_not_concern_it() -> None:
    shop = Shop()
    before = shop.table(config(room("r1"), rules={"r1": (STAFF,)}, lists=(LISTED, OTHER))).rooms[
        "r1"
    ]
    changed = replace(OTHER, items=("192.0.2.9",))
    assert (
        shop.table(config(room("r1"), rules={"r1": (STAFF,)}, lists=(LISTED, changed))).rooms["r1"]
        is before
    )


def test_a_file_in_which_something_new_does_not_compile_is_refused_and_the_running_table_stays() -> (
    None
):
    shop = Shop()
    before = shop.table(config(room("r1"))).rooms["r1"]
    broken = {name: (Rule(id="a", expression="nonsense"),) for name in ("r1", "r2")}
    with pytest.raises(InvalidConfig) as caught:
        shop.table(config(room("r1"), room("r2"), rules=broken), strict=True)
    assert [str(problem).partition(".expression")[0] for problem in caught.value.problems] == [
        "room r1: rules[0]",
        "room r2: rules[0]",
    ]
    with pytest.raises(InvalidConfig, match="list staff: "):
        shop.table(config(room("r1"), lists=(replace(LISTED, items=("x",)),)), strict=True)
    assert shop.table(config(room("r1"))).rooms["r1"] is before


def test_what_was_left_out_before_does_not_refuse_a_new_file() -> None:
    shop = Shop()
    broken = {"r1": (Rule(id="a", expression="nonsense"),)}
    shop.table(config(room("r1"), rules=broken))
    after = shop.table(config(room("r1", description="new"), rules=broken), strict=True)
    assert after.rooms["r1"].now.room.description == "new"


class FullDisk:
    """Draws without a seed while it is `failing`."""

    def __init__(self, failing: Exception | None) -> None:
        self.failing = failing

    def seed(self, _draw_id: str) -> bytes:
        if self.failing:
            raise self.failing
        return bytes(32)


DRAWN = event("e1", prequeue_start_ms=1, shuffle_at_event_start=True)
ALSO_DRAWN = replace(DRAWN, id="e2")


def test_a_template_that_does_not_compile_gives_the_builtin_page_and_is_named() -> None:
    shop = Shop()
    compiled = shop.table(config(room("r1", custom_page_html=BROKEN_PAGE))).rooms["r1"].now
    assert not compiled.page.custom
    assert not compiled.effective.ledger_room.queue_all
    assert [fault.unit for fault in shop.compiler.faults] == ["room r1"]


BROKEN_PAGE = "{{#if waitTime}}never closed"


def test_a_room_that_does_not_compile_holds_its_visitors_and_the_others_are_as_configured() -> None:
    shop, disk = Shop(), FullDisk(RuntimeError("a bug"))
    shop.compiler = RoomCompiler(disk, shop.errors.append)
    rooms = room("r1", description="new"), room("r2", description="new")
    wanted = config(*rooms, events={"r1": (DRAWN,)})
    table = shop.table(wanted)
    held, other = table.rooms["r1"].now, table.rooms["r2"].now
    assert held.effective.ledger_room.queue_all
    assert held.effective.ledger_room.total_active_users == 200
    assert table.find("r1.z1.example", "/any") is table.rooms["r1"]
    assert other.room == rooms[1]
    assert [fault.unit for fault in shop.compiler.faults] == ["room r1"]
    disk.failing = None
    mended = shop.table(wanted)
    assert not mended.rooms["r1"].now.effective.ledger_room.queue_all
    assert mended.rooms["r2"] is table.rooms["r2"]
    assert shop.compiler.faults == []


def test_a_rule_or_a_list_that_does_not_compile_is_left_out_and_the_others_count() -> None:
    shop = Shop()
    rules = Rule(id="b", expression="nonsense"), STAFF, Rule(id="c", expression="ip.src in $other")
    lists = LISTED, replace(OTHER, items=("not an address",))
    compiled = shop.table(config(room("r1"), rules={"r1": rules}, lists=lists)).rooms["r1"].now
    assert compiled.bypass is not None
    assert compiled.bypass(arrival("10.1.2.3"), 0) == STAFF
    assert compiled.bypass(arrival("192.0.2.1"), 0) is None
    assert [fault.unit for fault in shop.compiler.faults] == ["list other", "room r1", "room r1"]


def test_a_room_whose_draw_has_no_seed_yet_stays_as_it_runs_and_is_tried_again() -> None:
    disk = FullDisk(StorageFailed("no space left"))
    compiler = RoomCompiler(disk, print)
    running = compiler.table(Compilation(config(room("r1")), BOOKS, 0, NOTHING_KNOWN)).rooms["r1"]
    wanted = config(
        room("r1"), room("r2"), room("r3"), events={"r1": (DRAWN,), "r3": (ALSO_DRAWN,)}
    )
    table = compiler.table(Compilation(wanted, BOOKS, 0, NOTHING_KNOWN))
    assert table.rooms["r1"] is running
    assert not table.rooms["r2"].now.effective.ledger_room.queue_all
    assert table.rooms["r3"].now.effective.ledger_room.queue_all
    assert compiler.unfinished
    assert {fault.unit for fault in compiler.faults} == {"room r1", "room r3"}
    disk.failing = None
    assert compiler.table(Compilation(wanted, BOOKS, 0, NOTHING_KNOWN)).rooms["r1"].draws
    assert (compiler.unfinished, compiler.faults) == (False, [])


def test_a_trial_finds_only_what_is_new_and_asks_for_no_seed() -> None:
    broken = room("r1", custom_page_html=BROKEN_PAGE)
    rooms, rules = (broken, room("r2")), {"r2": (STAFF,)}
    running = config(*rooms, rules=rules, lists=(LISTED,))
    drawn = {"r1": (DRAWN,), "r2": (ALSO_DRAWN,)}
    wanted = config(*rooms, rules=rules, lists=(LISTED,), events=drawn)
    assert compile_faults(running, wanted) == []
    found = compile_faults(running, config(*rooms, rules=rules))
    assert [fault.unit for fault in found] == ["room r2"]
    found = compile_faults(config(room("r1")), config(broken))
    assert [fault.unit for fault in found] == ["room r1"]


def test_rules_that_may_wait_are_compiled_when_they_are_asked_or_when_there_is_time() -> None:
    for in_time in (True, False):
        shop = Shop()
        compiled = (
            shop.table(
                config(room("r1"), rules={"r1": (STAFF,)}, lists=(LISTED,)), rules_later=True
            )
            .rooms["r1"]
            .now
        )
        if in_time:
            assert shop.compiler.catch_up() is False
        assert compiled.bypass is not None
        assert compiled.bypass(arrival("10.1.2.3"), 0) == STAFF
        assert compiled.bypass(arrival("192.0.2.1"), 0) is None
        assert shop.errors == []


def test_rules_that_waited_and_cannot_be_used_let_no_visitor_by_and_are_told_once() -> None:
    shop = Shop()
    broken = {"r1": (Rule(id="a", expression="nonsense"),)}
    compiled = shop.table(config(room("r1"), rules=broken), rules_later=True).rooms["r1"].now
    assert compiled.bypass is not None
    assert [compiled.bypass(arrival("10.1.2.3"), 0) for _ in range(3)] == [None, None, None]
    assert len(shop.errors) == 1
    assert shop.failed_rules == ["r1"]
    assert [fault.unit for fault in shop.compiler.faults] == ["room r1"]


def test_new_offers_compile_their_room_alone_and_are_on_its_page() -> None:
    shop = Shop()
    before = shop.table(config(room("r1"), room("r2")))
    told = offers("r1").offers
    after = shop.table(config(room("r1"), room("r2"), offers={"r1": told}))
    assert after.rooms["r2"] is before.rooms["r2"]
    assert (before.rooms["r1"].now.offers, after.rooms["r1"].now.offers) == (None, told)


def test_places_move_where_the_room_lets_them() -> None:
    assert Shop().table(config(room("r1"))).rooms["r1"].now.moves
    assert not Shop().table(config(room("r1", move_places=False))).rooms["r1"].now.moves
