"""A stored record that cannot be read is held or left out and named; every other one is read."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from config_material import event, room, rules, zone
from hypothesis import given
from hypothesis import strategies as st

from greenroom.config_file.load import read_config
from greenroom.config_file.served import served
from greenroom.configuration.copy import ConfigCopy
from greenroom.configuration.stored_records import with_rows
from greenroom.model.change import Put, Remove, applied
from greenroom.model.configuration import KIND_OF, Configuration
from greenroom.model.zone import NO_ORIGIN

FILE = read_config("", Path("/etc/greenroom.toml"))
ROOM = room(path="/shop")
BODY = msgspec.json.encode(ROOM).decode()


def row(record, parent: str = "", body: str | None = None, kind: str = "") -> dict:
    return {
        "kind": kind or KIND_OF[type(record)],
        "id": record.id,
        "parent": parent,
        "created_ms": 1,
        "modified_ms": 1,
        "revision": 1,
        "body": msgspec.json.encode(record).decode() if body is None else body,
    }


def beside(*rows: dict) -> Configuration:
    """What is read of these rows and of a zone with a good room."""
    good = [row(zone()), row(room("good"), "z1"), row(rules("good", "ip.src eq 1.2.3.4"), "good")]
    return with_rows(Configuration(), 3, [*good, *rows])


def held(configuration: Configuration, room_id: str) -> list[str]:
    return [
        f"{route.host}{route.path}"
        for found in served(FILE, configuration).rooms
        if found.id == room_id and found.queue_all
        for route in found.routes
    ]


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(BODY), **fields})


@pytest.mark.parametrize(
    "body",
    [
        changed(queueing_method="newer"),
        changed(total_active_users=0),
        changed(name=5, additional_routes=[{"host": ""}]),
        changed(id="another"),
        BODY[:-9],
        BODY[: BODY.index("additional_routes")],
    ],
)
def test_a_room_whose_host_and_path_can_be_read_is_held(body: str) -> None:
    found = beside(row(ROOM, "z1", body))
    assert held(found, "r1") == ["r1.z1.example/shop"]
    assert not held(found, "good")
    (fault,) = served(FILE, found).faults
    assert "r1" in fault.unit
    assert fault.zone_id == "z1"


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text() | st.sampled_from(sorted(msgspec.to_builtins(ROOM))), inner)
        ),
    ).map(json.dumps),
    st.integers(0, len(BODY)),
)
def test_no_body_stops_the_others(body: str, cut: int) -> None:
    for text in (body, BODY[:cut], BODY[:cut] + body):
        for kind, parent in (("room", "z1"), ("event", "good"), ("list", ""), ("future", "")):
            found = beside(row(ROOM, parent, text, kind))
            assert "good" in found.rooms
            assert found.rules["good"].record.rules
            config = served(FILE, found)
            assert not held(found, "good")
            assert (kind, "r1") in found.unusable or found.rooms["r1"].record.id == "r1"
            assert bool(config.faults) == bool(found.unusable)


def test_the_rooms_of_a_zone_that_cannot_be_read_or_is_gone_are_held() -> None:
    broken = row(zone(origin="http://app.example"), "", '{"id": "z1", "origin": 5}')
    for rows in ([broken, row(ROOM, "z1")], [row(ROOM, "z1")]):
        found = with_rows(Configuration(), 3, rows)
        assert held(found, "r1") == ["r1.z1.example/shop"]
        config = served(FILE, found)
        assert [found.origin for found in config.stored_zones] == [NO_ORIGIN]
        assert len(config.faults) == 1


def test_what_belongs_to_nothing_is_left_out_and_named() -> None:
    found = beside(row(event(), "gone"))
    assert not found.events
    assert "room gone, which is not there" in found.unusable["event", "e1"].record.reason


def test_it_is_named_until_it_is_replaced_or_removed() -> None:
    found = beside(row(ROOM, "z1", changed(queueing_method="newer")), row(event(), "r1", "x"))
    assert set(found.unusable) == {("room", "r1"), ("event", "e1")}
    same = found.rooms["r1"].record
    after, (step,) = applied(found, [Put(same, "z1")], 5)
    assert step.action == "changed"
    assert set(after.unusable) == {("event", "e1")}
    after, (step,) = applied(found, [Put(event(), "r1")], 5)
    assert step.before is not None
    assert set(after.unusable) == {("room", "r1")}
    for change in (Remove("room", "r1"), Remove("zone", "z1")):
        after, steps = applied(found, [change], 5)
        assert not after.unusable
        assert {("room", "r1"), ("event", "e1")} <= {(one.kind, one.entry.id) for one in steps}
    assert not applied(beside(row(ROOM, "", "{}", "future")), [Remove("future", "r1")], 5)[
        0
    ].unusable


def test_a_later_reading_of_the_row_replaces_what_was_known() -> None:
    found = beside(row(ROOM, "z1"), row(event(), "r1"))
    broken = with_rows(found, 4, [row(ROOM, "z1", BODY[:-9]), row(event(), "r1", "x")])
    assert held(broken, "r1")
    assert not broken.events
    again = with_rows(broken, 5, [row(ROOM, "z1"), row(event(), "r1")])
    assert not again.unusable
    assert not held(again, "r1")
    assert "e1" in again.events


def test_the_copy_keeps_what_cannot_be_used_and_reads_what_is_newer(tmp_path: Path) -> None:
    found = beside(row(ROOM, "z1", changed(queueing_method="newer")), row(event(), "r1", "x"))
    copy = ConfigCopy(tmp_path / "copy")
    copy.save(found)
    again = copy.load()
    assert again is not None
    assert again.unusable == found.unusable
    assert held(again, "r1")
    _, _, body = copy.path.read_bytes().partition(b"\n")
    body = body.replace(b'"fifo"', b'"newer"')
    copy.path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    stricter = copy.load()
    assert stricter is not None
    assert held(stricter, "good")
