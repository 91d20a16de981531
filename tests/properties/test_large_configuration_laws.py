"""A document with thousands of rooms: each costs the same, too many are refused with everything
else, and drafts are what they say.
"""

import time
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from config_material import event, room, zone
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.config_file.load import read_config
from greenroom.config_file.served import new_faults
from greenroom.configuration.layers import LayeredStore
from greenroom.configuration.rooms import ROOMS_MAX
from greenroom.configuration.store import SqlStore, default_url
from greenroom.configuration.zones import ZONES_MAX
from greenroom.errors import Problem
from greenroom.model.change import Change, Draft, Put, Remove, applied, carry_out
from greenroom.model.configuration import KINDS, Configuration
from greenroom.runtime.clock import MonotonicClock
from greenroom.transfer.export_import import make_true
from greenroom.web.config_service import ChangeContext, ConfigService
from greenroom.web.refusals import Code, Refused

pytestmark = pytest.mark.slow

NUMBERS = count()


def no_problems(_pointer: str, _url: str) -> list[Problem]:
    return []


FILE = """
origin = "http://127.0.0.1:3000"
[[rooms]]
name = "infile"
host = "f.b.example"
total_active_users = 300
new_users_per_minute = 200
"""
FEW, MANY = 250, 1_000
QUADRATIC = 2.2
"""Times what a linear cost would be: the square of the rooms is 4 times, and caches and allocators
leave less than 1.5.
"""


def planned(known: Configuration, document: object) -> Configuration:
    moment = ChangeContext(1_700_000_000_000, lambda: f"new-{next(NUMBERS)}")
    after, _ = applied(
        known, make_true(document, no_problems)(known, moment).changes, moment.now_ms
    )
    return after


def document_of(number: int) -> dict:
    sale = {
        "name": "sale",
        "event_start_time": "2030-01-01T10:00:00Z",
        "event_end_time": "2030-01-01T12:00:00Z",
    }
    bypass = {"action": "bypass_waiting_room", "expression": "ssl"}
    limits = {"total_active_users": 300, "new_users_per_minute": 200}
    rooms = [
        {
            "name": f"r{n}",
            "host": f"r{n}.z.example",
            "cookie_suffix": f"s{n}",
            **limits,
            "events": [sale],
            "rules": [bypass],
        }
        for n in range(number)
    ]
    return {"zones": [{"name": "z.example", "waiting_rooms": rooms}]}


def cost_s(known: Configuration, document: dict) -> float:
    """Processor time, the least of some: other programs only add to it."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        planned(known, document)
        spent.append(time.process_time() - began)
    return min(spent)


@pytest.mark.parametrize("how", ["into an empty store", "a second time", "to take all rooms away"])
def test_four_times_the_rooms_cost_four_times_as_much(how: str) -> None:
    costs = []
    for number in (FEW, MANY):
        document = document_of(number)
        known = (
            Configuration() if how == "into an empty store" else planned(Configuration(), document)
        )
        if how == "to take all rooms away":
            document["zones"][0]["waiting_rooms"] = []
        costs.append(cost_s(known, document))
    assert costs[1] / costs[0] < QUADRATIC * MANY / FEW


def test_too_many_rooms_and_zones_are_refused_once_with_everything_else_that_is_wrong() -> None:
    document = {"zones": [{"name": f"z{n}.example"} for n in range(ZONES_MAX + 7)]}
    document["zones"][0]["waiting_rooms"] = [{"name": "a b"}, *({} for _ in range(2 * ROOMS_MAX))]
    with pytest.raises(Refused) as caught:
        planned(Configuration(), document)
    texts = [fault.message for fault in caught.value.faults if fault.code is Code.TOO_MANY]
    assert texts == [
        "1007 zones are too many; at most 1000 are allowed",
        "10001 waiting rooms are too many; at most 5000 are allowed",
    ]
    places = {fault.pointer for fault in caught.value.faults}
    assert {
        "/zones/0/waiting_rooms/0/name",
        f"/zones/0/waiting_rooms/{ROOMS_MAX - 1}/host",
    } <= places
    assert f"/zones/0/waiting_rooms/{ROOMS_MAX}/host" not in places, (
        "what is beyond the limit is only counted"
    )


def test_rooms_of_a_file_count_and_stay_whatever_the_document_says_of_their_zones(
    tmp_path: Path,
) -> None:
    file = read_config(FILE, tmp_path / "greenroom.toml")
    layered = LayeredStore(
        SqlStore(default_url(tmp_path)),
        lambda: file.documents,
        lambda: 1,
        partial(new_faults, file),
    )
    config_service = ConfigService(layered, MonotonicClock())
    config_service.change("me", make_true({"zones": [{"name": "b.example"}]}, no_problems))
    assert [entry.parent for entry in layered.read().rooms.values()] == list(
        layered.read().zones
    ), "it lies in a zone of the store"

    inside = {
        "name": "shop",
        "host": "f.b.example",
        "total_active_users": 300,
        "new_users_per_minute": 200,
    }
    taken = {"zones": [{"name": "f.b.example", "waiting_rooms": [inside]}, {"name": "b.example"}]}
    with pytest.raises(
        Refused,
        match=r"f\.b\.example/ already belongs to waiting room infile of the configuration file",
    ):
        config_service.trial(make_true(taken, no_problems))
    assert config_service.change("me", make_true({"zones": []}, no_problems)) == [
        "remove zone b.example"
    ]
    assert [entry.record.name for entry in layered.read().rooms.values()] == ["infile"]
    full = {"zones": [{"name": "c.example", "waiting_rooms": [{}] * ROOMS_MAX}]}
    with pytest.raises(Refused, match="5001 waiting rooms are too many"):
        config_service.trial(make_true(full, no_problems))
    layered.close()


RECORDS = st.one_of(
    st.sampled_from(["z1", "z2"]).map(lambda key: Put(zone(key))),
    st.builds(
        lambda key, name, above: Put(room(key, name=name), above),
        *(st.sampled_from(found) for found in (["r1", "r2", "r3"], "ab", ["z1", "z2"])),
    ),
    st.builds(
        lambda key, text, above: Put(event(key, description=text), above),
        *(st.sampled_from(found) for found in (["e1", "e2"], "xy", ["r1", "r2"])),
    ),
    st.builds(Remove, st.just("room"), st.sampled_from(["r1", "r2", "r3"])),
    st.builds(Remove, st.just("zone"), st.sampled_from(["z1", "z2"])),
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(RECORDS, max_size=12), st.lists(RECORDS, max_size=12))
def test_a_draft_is_at_every_moment_what_its_changes_have_made(
    before: list[Change], changes: list[Change]
) -> None:
    old = Configuration()
    for change in before:
        old = after(old, change) or old
    draft = Draft(old)
    live, wanted = draft.live(), old
    for change in changes:
        nxt = after(wanted, change)
        if nxt is None:
            with pytest.raises(KeyError):
                carry_out([change], draft, 1)
            continue
        carry_out([change], draft, 1)
        wanted = nxt
        assert held(live) == held(wanted)
        assert [sorted(live.below("zone", key)) for key in live.zones] == [
            sorted(wanted.below("zone", key)) for key in live.zones
        ]
    assert held(draft.finished()) == held(wanted)


def after(known: Configuration, change: Change) -> Configuration | None:
    """One change by itself; None when it cannot be made."""
    draft = Draft(known)
    try:
        carry_out([change], draft, 1)
    except KeyError:
        return None
    return draft.finished()


def held(known: Configuration) -> dict:
    return {
        (kind, key): (entry.record, entry.parent)
        for kind in KINDS
        for key, entry in known.index_of(kind).items()
    }
