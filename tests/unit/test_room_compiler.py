"""Only what changed is compiled again, and rules may wait until they are asked."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from config_material import room

from greenroom.config.load import read_config
from greenroom.config.settings import Config
from greenroom.core.rules import NOTHING_KNOWN
from greenroom.decision.room_table import RoomTable
from greenroom.errors import InvalidConfig
from greenroom.model.rule import Rule, RuleList
from greenroom.model.visit import Arrival
from greenroom.model.zone import Zone
from greenroom.runtime.room_compiler import RoomCompiler

EMPTY = read_config("", Path("/etc/greenroom.toml"))
BOOKS: Any = {
    name: SimpleNamespace(ledger=object(), counts=Counter()) for name in ("r1", "r2", "r3")
}
STAFF = Rule(id="a", expression="ip.src in $staff")
LISTED = RuleList(name="staff", kind="ip", items=("10.0.0.0/8",))
OTHER = RuleList(name="other", kind="ip")


class Shop:
    """A compiler and what went wrong in it."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        draws: Any = None
        self.failed_rules: list[str] = []
        self.compiler = RoomCompiler(draws, self.errors.append, self.failed_rules.append)

    def table(self, config: Config, **options: bool) -> RoomTable:
        return self.compiler.table(config, BOOKS, 0, NOTHING_KNOWN, **options)


def config(*rooms: Any, **more: Any) -> Config:
    return replace(EMPTY, rooms=rooms, **more)


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
        asyncio.run(turns_during(shop.compiler.compile_ahead(whole, books, 0, NOTHING_KNOWN))) > 3
    )
    ahead = {room_id: schedule for room_id, (_, schedule) in shop.compiler._rooms_ahead.items()}
    assert shop.compiler.table(whole, books, 0, NOTHING_KNOWN).rooms == ahead


def test_what_is_wrong_with_rooms_compiled_ahead_is_told_at_once_by_the_table() -> None:
    shop = Shop()
    broken = config(
        room("r1"),
        room("r2"),
        rules={"r1": (replace(STAFF, expression="?"),), "r2": (replace(STAFF, expression="!"),)},
    )
    asyncio.run(shop.compiler.compile_ahead(broken, BOOKS, 0, NOTHING_KNOWN))
    with pytest.raises(InvalidConfig) as found:
        shop.table(broken)
    assert {problem.pointer.split(":")[0] for problem in found.value.problems} == {
        "room r1",
        "room r2",
    }


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
            "zones": {"r1": Zone(id="z", name="z1.example", always_use_https=True)},
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


def test_everything_that_does_not_compile_is_told_with_its_room_and_the_running_table_stays() -> (
    None
):
    shop = Shop()
    before = shop.table(config(room("r1"))).rooms["r1"]
    broken = {name: (Rule(id="a", expression="nonsense"),) for name in ("r1", "r2")}
    with pytest.raises(InvalidConfig) as caught:
        shop.table(config(room("r1"), room("r2"), rules=broken))
    assert [str(problem).partition(".expression")[0] for problem in caught.value.problems] == [
        "room r1: rules[0]",
        "room r2: rules[0]",
    ]
    with pytest.raises(InvalidConfig, match="list staff: "):
        shop.table(config(room("r1"), lists=(replace(LISTED, items=("x",)),)))
    assert shop.table(config(room("r1"))).rooms["r1"] is before


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
