"""File and store as one configuration: for the edge to compile, and for the API to show."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from config_material import event, full_room, offers, room, rules, zone

from greenroom.config_file.load import read_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.served import new_faults, served
from greenroom.configuration.file_tables import FILE_ZONE_ID, file_entry
from greenroom.configuration.layers import LayeredStore
from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.change import Put, Remove, applied
from greenroom.model.configuration import Configuration
from greenroom.model.route import Route
from greenroom.model.rule import ListItem, RuleList
from greenroom.model.zone import Zone
from greenroom.runtime.assemble import origins
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.room_compiler import compile_faults

FILE = """
origin = "http://127.0.0.1:3000"
trusted_proxies = ["192.0.2.1"]
[origins]
"exact.example.com" = "http://127.0.0.1:3001"
[[lists]]
name = "staff"
kind = "ip"
items = ["10.0.0.0/8"]
[[rooms]]
name = "infile"
host = "file.example.com"
total_active_users = 10
new_users_per_minute = 10
[[rooms.rules]]
expression = "ip.src in $staff"
"""


@pytest.fixture
def file() -> ProcessConfig:
    return read_config(FILE, Path("/etc/greenroom/greenroom.toml"))


def stored(*puts: Put) -> Configuration:
    configuration, _ = applied(Configuration(), list(puts), 1)
    return configuration


ZONE = Put(
    zone(
        "z1",
        name="example.com",
        origin="http://127.0.0.1:4000",
        trusted_proxies=("192.0.2.1", "192.0.2.2"),
    )
)


def test_everything_of_both_is_there(file: ProcessConfig) -> None:
    lists = [
        Put(RuleList(id="l1", name="office", kind="ip")),
        Put(ListItem(id="i1", value="192.0.2.0/24"), "l1"),
    ]
    both = served(
        file,
        stored(
            ZONE,
            Put(room("r1"), "z1"),
            Put(event("e1"), "r1"),
            Put(rules("r1", "ssl"), "r1"),
            *lists,
        ),
    )
    assert [found.name for found in both.rooms] == ["infile", "r1"]
    assert [found.name for found in both.documents.events_of("r1")] == ["e1"]
    assert [rule.expression for rule in both.documents.rules_of("r1")] == ["ssl"]
    assert [(found.name, found.items) for found in both.lists] == [
        ("staff", ("10.0.0.0/8",)),
        ("office", ("192.0.2.0/24",)),
    ]
    assert both.trusted_proxies == ("192.0.2.1",)
    (found,) = both.stored_zones
    assert (found.name, found.trusted_proxies) == ("example.com", ("192.0.2.1", "192.0.2.2"))
    assert [room.name for room in map(both.zone_of, both.rooms) if room] == ["example.com"]
    assert both.zone_of(file.rooms[0]) is None, "the file's rooms are governed by the file"


def test_a_zone_adds_its_own_to_its_rooms(file: ProcessConfig) -> None:
    paused = zone("z1", name="example.com", paused=True, case_insensitive_paths=True)
    both = served(file, stored(Put(paused), Put(room("r1"), "z1")))
    assert both.rooms[1].suspended
    assert both.rooms[1].case_insensitive_paths
    assert not both.rooms[0].suspended


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (
            Put(room("r1", host="file.example.com"), "z1"),
            "room r1: file.example.com/ already belongs to waiting room infile",
        ),
        (
            Put(RuleList(id="l1", name="staff", kind="asn")),
            "list staff: is already in the configuration file",
        ),
        (
            Put(replace(ZONE.record, origin="ftp://x")),
            "zone example.com: origin: must be http://host",
        ),
        (
            Put(replace(ZONE.record, origin="http://127.0.0.1:8080")),
            "zone example.com: origin: must not be greenroom's own address",
        ),
        (Put(replace(full_room("r1"), additional_routes=()), "z1"), ""),
    ],
)
def test_what_both_claim_is_a_problem(put: Put, said: str, file: ProcessConfig) -> None:
    configuration = stored(ZONE, put)
    if not said:
        assert len(served(file, configuration).rooms) == 2
        return
    both = served(file, configuration)
    assert any(said in str(fault.problem) for fault in both.faults)
    assert (both.rooms[0], both.lists[0]) == (file.rooms[0], file.lists[0])


def test_the_id_of_a_room_in_the_file_cannot_be_taken(file: ProcessConfig) -> None:
    taken = file.rooms[0].id
    puts = ZONE, Put(replace(room("r1"), id=taken), "z1"), Put(event("e1"), taken)
    both = served(file, stored(*puts))
    assert both.rooms == file.rooms
    assert not both.documents.events
    assert [str(fault.problem) for fault in both.faults] == [
        f"room r1 ({taken}): has the id of a waiting room in the configuration file"
    ]


def test_two_rooms_with_one_cookie_leave_the_older_one_as_it_is_and_hold_the_visitors_of_the_other(
    file: ProcessConfig,
) -> None:
    folding = Put(zone("z1", name="example.com", case_insensitive_paths=True))
    paths = [Put(room(name, host="a.example.com", path=f"/{name}"), "z1") for name in ("r1", "r2")]
    other = [Put(zone("z2", name="example.org")), Put(room("r3", host="example.org"), "z2")]
    both = served(file, stored(folding, *paths, *other, Put(event("e1"), "r2")))
    _, first, second, third = both.rooms
    assert (first.queue_all, second.queue_all) == (False, True)
    assert (second.id, second.routes) == ("r2", paths[1].record.routes)
    assert second.cookie_name != first.cookie_name
    assert not both.documents.events_of("r2"), "an event would end the hold"
    assert third == other[1].record
    assert [(fault.unit, fault.zone_id) for fault in both.faults] == [("room r2", "z1")]


def test_a_room_is_held_on_the_routes_that_no_other_room_covers(file: ProcessConfig) -> None:
    routes = Route("file.example.com"), Route("b.example.com", "/b")
    clashing = room("r1", host="a.example.com", additional_routes=routes, cookie_suffix="x")
    held = served(file, stored(ZONE, Put(clashing, "z1"))).rooms[1]
    assert held.queue_all
    assert held.routes == (Route("a.example.com"), Route("b.example.com", "/b"))


def test_a_zone_whose_origin_cannot_be_used_is_held_and_no_other_origin_gets_its_requests(
    file: ProcessConfig,
) -> None:
    loop = Put(replace(ZONE.record, origin="http://127.0.0.1:8080"))
    both = served(file, stored(loop, Put(room("r1", host="a.example.com"), "z1")))
    assert both.rooms[1].queue_all
    origin = origins(both)("a.example.com")
    assert origin is not None
    assert origin.host == "origin.invalid"


def layered_on(path: Path, file: ProcessConfig, *puts: Put) -> LayeredStore:
    layered = LayeredStore(
        SqlStore(default_url(path)),
        lambda: file.documents,
        lambda: 1,
        lambda before, after: new_faults(file, before, after, compile_faults),
    )
    layered.write(list(puts), expected=0, author="test", now_ms=1)
    return layered


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            Put(zone("z2", name="example.net", case_insensitive_paths=True)),
            "room r2: cookie_suffix",
        ),
        (Put(room("r3", host="a.example.net", path="/r1"), "z2"), "room r3: a.example.net/r1"),
        (Put(room("r1", host="a.example.net", path="/r2"), "z2"), "waiting room of another zone"),
        (Put(room("r3", host="example.net", custom_page_html="{{#if x}}"), "z2"), "room r3: "),
        (Put(rules("r1", "nonsense"), "r1"), "room r1: rules[0].expression"),
        (Put(RuleList(id="l2", name="staff", kind="ip")), "list staff: is already in"),
        (Put(ListItem(id="i1", value="x"), "l1"), "list office: "),
        (Remove("list", "l1"), "waiting room of another zone"),
        (Put(room("r1", host="a.example.net", path="/r9"), "z2"), ""),
        (Put(zone("z2", name="example.net", paused=True)), ""),
    ],
)
def test_what_processes_could_not_use_is_found_before_it_is_saved(
    change: Put | Remove, said: str, file: ProcessConfig, tmp_path: Path
) -> None:
    layered = layered_on(
        tmp_path,
        file,
        Put(zone("z2", name="example.net")),
        Put(zone("z3", name="a.example.net")),
        Put(room("r1", host="a.example.net", path="/r1"), "z2"),
        Put(
            room("r2", host="a.example.net", path="/r2"),
            "z2" if isinstance(change, Put) and isinstance(change.record, Zone) else "z3",
        ),
        Put(RuleList(id="l1", name="office", kind="ip")),
        Put(rules("r2", "ip.src in $office"), "r2"),
    )
    problems = layered.judge([change], expected=1, now_ms=2)
    assert any(said in str(problem) for problem in problems) if said else problems == []
    assert layered.judge([change], expected=0, now_ms=2) == [], "the write finds the conflict"
    layered.close()


def test_what_is_unusable_already_does_not_refuse_other_changes(
    file: ProcessConfig, tmp_path: Path
) -> None:
    broken = Put(room("r1", host="file.example.com", custom_page_html="{{#if x}}"), "z1")
    layered = layered_on(tmp_path, file, ZONE, broken)
    assert served(file, layered.read()).faults
    assert layered.judge([Put(room("r2", host="b.example.com"), "z1")], expected=1, now_ms=2) == []
    layered.close()


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("exact.example.com", 3001),
        ("below.exact.example.com", 4000),
        ("example.com", 4000),
        ("a.b.example.com", 4000),
        ("in.inner.example.com", 5000),
        ("inner.example.com", 5000),
        ("badexample.com", 3000),
        ("com", 3000),
        ("", 3000),
    ],
)
def test_a_host_goes_to_its_own_origin_else_to_that_of_the_smallest_zone_around_it(
    host: str, port: int, file: ProcessConfig
) -> None:
    inner = Put(zone("z2", name="inner.example.com", origin="http://127.0.0.1:5000"))
    found = origins(served(file, stored(ZONE, inner, Put(zone("z3", name="none.example.com")))))(
        host
    )
    assert found is not None
    assert found.port == port


def test_without_any_origin_a_host_has_none() -> None:
    assert (
        origins(served(read_config("", Path("/etc/greenroom.toml")), stored(ZONE)))("elsewhere.org")
        is None
    )


def test_the_api_sees_the_file_marked_read_only_in_the_zone_that_covers_it(
    file: ProcessConfig, tmp_path: Path
) -> None:
    store = SqlStore(default_url(tmp_path))
    layered = LayeredStore(
        store, lambda: file.documents, MonotonicClock().now_ms, partial(new_faults, file)
    )
    alone = layered.read()
    assert [(entry.id, entry.record.name, entry.read_only) for entry in alone.zones.values()] == [
        (FILE_ZONE_ID, "file", True)
    ]
    assert layered.read() is alone, "put together once"
    both = layered.write([ZONE, Put(room("r1"), "z1")], expected=0, author="me", now_ms=1)
    assert [
        (entry.record.name, entry.parent, entry.read_only) for entry in both.rooms.values()
    ] == [
        ("r1", "z1", False),
        ("infile", "z1", True),
    ]
    assert FILE_ZONE_ID not in both.zones
    assert [entry.record.value for entry in both.list_items.values()] == ["10.0.0.0/8"]
    assert [rule.expression for rule in both.rules[file.rooms[0].id].record.rules] == [
        "ip.src in $staff"
    ]
    assert both.rooms[file.rooms[0].id].created_ms == alone.rooms[file.rooms[0].id].created_ms
    assert layered.revision() == store.revision() == 1
    gone = layered.write([Remove("zone", "z1")], expected=1, author="me", now_ms=1)
    assert [entry.parent for entry in gone.rooms.values()] == [FILE_ZONE_ID]
    assert layered.audit(1) == store.audit(1)
    layered.close()


def test_a_file_that_changed_is_shown_as_it_is_now(file: ProcessConfig, tmp_path: Path) -> None:
    shown = [file.documents]
    layered = LayeredStore(
        SqlStore(default_url(tmp_path)),
        lambda: shown[0],
        MonotonicClock().now_ms,
        partial(new_faults, file),
    )
    before = layered.read().rooms[file.rooms[0].id]
    changed = file_entry(replace(file.rooms[0], description="new"), FILE_ZONE_ID)
    shown[0] = shown[0].changed(0, [changed])
    after = layered.read().rooms[file.rooms[0].id]
    assert (before.record.description, after.record.description) == ("", "new")
    assert after.created_ms == before.created_ms
    assert after.modified_ms >= before.modified_ms


def test_offers_of_the_store_reach_their_room(file: ProcessConfig) -> None:
    told = offers("r1")
    both = served(file, stored(Put(zone("z1"), ""), Put(room("r1"), "z1"), Put(told, "r1")))
    assert both.documents.offers_of("r1") == told.offers
