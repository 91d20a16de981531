"""A configuration written out and made true again: the same, and the second time there is nothing
to do.
"""

import json
import tomllib
from itertools import count
from pathlib import Path

import pytest
from config_material import contents, one_of_each, room, zone
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.configuration.store import SqlStore
from greenroom.errors import Problem
from greenroom.model.account import Token, secret_hash
from greenroom.model.change import Put, applied
from greenroom.model.configuration import Configuration
from greenroom.model.rule import ListItem
from greenroom.runtime.clock import MonotonicClock
from greenroom.transfer.export_import import differences, exported, make_true, toml_text
from greenroom.web.config_service import ChangeContext, ConfigService
from greenroom.web.refusals import Refused

CLOCK = MonotonicClock()


def no_problems(_pointer: str, _url: str) -> list[Problem]:
    return []


NUMBERS = count()


def planned(known: Configuration, document: object, **options: bool) -> tuple[Configuration, list]:
    """The configuration after the document was made true, and what is said about it."""
    moment = ChangeContext(1_700_000_000_000, lambda: f"new-{next(NUMBERS)}")
    answer = make_true(document, no_problems, **options)(known, moment)
    after, _ = applied(known, answer.changes, moment.now_ms)
    return after, answer.answer(after)


NAMES = st.sampled_from(["a", "b", "c"])
ROOMS = st.fixed_dictionaries(
    {
        "name": NAMES,
        "total_active_users": st.just(300),
        "new_users_per_minute": st.sampled_from([200, 300]),
    },
    optional={
        "custom_page_html": st.sampled_from(["", "<p>\n{{waitTime}}</p>"]),
        "queue_all": st.booleans(),
        "greenroom": st.just({"refresh_max_seconds": 30}),
        "events": st.lists(
            st.sampled_from(
                [
                    {
                        "name": "sale",
                        "event_start_time": "2030-01-01T10:00:00Z",
                        "event_end_time": "2030-01-01T12:00:00Z",
                    },
                    {
                        "name": "later",
                        "event_start_time": "2030-02-01T10:00:00+01:00",
                        "event_end_time": "2030-02-01T12:00:00Z",
                        "prequeue_start_time": "2030-02-01T08:00:00Z",
                        "disable_session_renewal": False,
                    },
                ]
            ),
            max_size=2,
            unique_by=lambda event: event["name"],
        ),
        "rules": st.lists(
            st.sampled_from(
                [
                    {"action": "bypass_waiting_room", "expression": "ip.src in $office"},
                    {
                        "action": "bypass_waiting_room",
                        "expression": "ssl",
                        "enabled": False,
                        "description": "x",
                    },
                ]
            ),
            max_size=2,
        ),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict:
    """Whole configurations that hold the list that their rules need."""
    zones = []
    for name in draw(st.lists(NAMES, max_size=2, unique=True)):
        inside = draw(st.lists(ROOMS, max_size=3, unique_by=lambda found: found["name"]))
        hosted = [{**found, "host": f"{found['name']}.{name}.example"} for found in inside]
        zones.append(
            {
                "name": f"{name}.example",
                "settings": {"search_engine_crawler_bypass": draw(st.booleans())},
                "waiting_rooms": hosted,
            }
        )
    items = draw(st.lists(st.sampled_from(["192.0.2.1", "10.0.0.0/8", "::1"]), unique=True))
    return {
        "lists": [{"name": "office", "kind": "ip", "items": [{"ip": item} for item in items]}],
        "zones": zones,
    }


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), documents())
def test_anything_that_was_before_the_document_is_true_afterwards_and_then_nothing_is_left_to_do(
    first: dict, second: dict
) -> None:
    known, _ = planned(Configuration(), first)
    after, steps = planned(known, second)
    again, nothing = planned(after, second)
    assert again is after
    assert nothing == []
    fresh, _ = planned(Configuration(), second)
    assert without_ids(exported(after)) == without_ids(exported(fresh))
    assert bool(steps) == (after is not known)


def without_ids(document: object) -> object:
    """The document without ids, whose order does not matter: what stayed keeps its place."""
    if isinstance(document, dict):
        return {key: without_ids(value) for key, value in document.items() if key != "id"}
    if isinstance(document, list):
        return sorted(
            (without_ids(entry) for entry in document),
            key=lambda entry: json.dumps(entry, sort_keys=True),
        )
    return document


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_what_is_written_out_can_be_put_elsewhere_with_its_ids(document: dict) -> None:
    known, _ = planned(Configuration(), document)
    for written in (
        tomllib.loads(toml_text(exported(known))),
        json.loads(json.dumps(exported(known))),
    ):
        elsewhere, _ = planned(Configuration(), written, only_into_empty=True)
        assert exported(elsewhere) == exported(known)
        assert planned(known, written)[1] == []


def everything() -> Configuration:
    made, _ = applied(Configuration(), [Put(record, parent) for record, parent in one_of_each()], 1)
    return made


def test_no_secret_is_written_out_and_tokens_are_left_alone() -> None:
    known = everything()
    text = json.dumps(exported(known))
    assert secret_hash("x") not in text
    assert "deploy" not in text
    for secret in (
        '"k"',
        "R1",
        "argon2id",
    ):  # of the webhook, the PagerDuty service and the account; what may be shown of a URL is shown
        assert secret not in text
    after, _ = planned(known, {"zones": [], "lists": []})
    alerting = [
        "webhook",
        "pagerduty_service",
        "alert_policy",
        "silence",
        "incident_note",
        "status_page",
    ]
    assert [kind for kind, _, _ in contents(after)] == ["operation", "token", *alerting, "account"]


def test_a_section_that_is_left_out_is_not_touched() -> None:
    known = everything()
    after, steps = planned(known, {"lists": []})
    assert steps == ["remove list office", "remove list item 192.0.2.0/24 of office"]
    assert after.zones == known.zones
    assert after.rooms == known.rooms


def test_rooms_may_swap_their_hosts_in_one_go() -> None:
    limits = {"total_active_users": 300, "new_users_per_minute": 200}
    rooms = [
        {"name": "one", "host": "a.z.example", **limits},
        {"name": "two", "host": "b.z.example", **limits},
    ]
    known, _ = planned(Configuration(), {"zones": [{"name": "z.example", "waiting_rooms": rooms}]})
    swapped = [{**rooms[0], "host": "b.z.example"}, {**rooms[1], "host": "a.z.example"}]
    after, steps = planned(known, {"zones": [{"name": "z.example", "waiting_rooms": swapped}]})
    assert {entry.record.name: entry.record.host for entry in after.rooms.values()} == {
        "one": "b.z.example",
        "two": "a.z.example",
    }
    assert set(after.rooms) == set(known.rooms)
    assert steps == [
        "change room one of z.example: host 'a.z.example' -> 'b.z.example'",
        "change room two of z.example: host 'b.z.example' -> 'a.z.example'",
    ]


def test_a_room_that_moves_to_another_zone_takes_its_events_and_rules_along() -> None:
    known = everything()
    written = exported(known)
    inside = written["zones"][0].pop("waiting_rooms")
    for found in inside:
        found.update(host="r1.z2.example", additional_routes=[])
    after, _ = planned(
        known,
        {
            "zones": [
                {"name": "z2.example", "greenroom": {"limit_floor": 1}, "waiting_rooms": inside}
            ]
        },
    )
    assert [entry.parent for entry in after.rooms.values()] == [next(iter(after.zones))]
    assert set(after.rooms) == set(known.rooms)
    assert len(after.events) == len(known.events) == 1
    assert after.rules["r1"].record == known.rules["r1"].record


def test_everything_wrong_is_said_at_once_with_its_place() -> None:
    document = {
        "lists": [{"name": "x", "kind": "ip", "items": [{"ip": "nonsense"}]}],
        "zones": [
            {
                "name": "z.example",
                "waiting_rooms": [
                    {"name": "a b", "host": "a.z.example"},
                    {"name": "c", "host": "elsewhere.example"},
                ],
            },
            {"name": "z.example"},
        ],
    }
    with pytest.raises(Refused) as caught:
        planned(Configuration(), document)
    places = {fault.pointer for fault in caught.value.faults}
    assert {
        "/lists/0/items/0/ip",
        "/zones/0/waiting_rooms/0/name",
        "/zones/0/waiting_rooms/1/host",
        "/zones/0/waiting_rooms/1/total_active_users",
        "/zones/1/name",
    } <= places


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"rooms": []},
        {"zones": {}},
        {"zones": [3]},
        {"zones": [{"name": "z.example", "waiting_rooms": 3}]},
    ],
)
def test_what_is_no_configuration_is_refused(document: object) -> None:
    with pytest.raises(Refused):
        planned(everything(), document)


def test_an_import_never_changes_what_is_there() -> None:
    known, _ = planned(Configuration(), {"zones": [{"name": "z.example"}]})
    with pytest.raises(Refused, match="the store already has a configuration"):
        planned(known, {"zones": []}, only_into_empty=True)
    assert planned(known, exported(known), only_into_empty=True)[1] == []


def test_a_desk_makes_it_true_in_one_revision(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path / 'config.db'}")
    config_service = ConfigService(store, CLOCK)
    store.write(
        [Put(Token(id="t", name="t", scopes=("read",), secret_sha256=secret_hash("s")))],
        expected=0,
        author="me",
        now_ms=1,
    )
    document = {
        "zones": [{"name": "z.example"}],
        "lists": [{"name": "l", "kind": "asn", "items": [{"asn": 64_500, "comment": "x"}]}],
    }
    assert len(config_service.trial(make_true(document, no_problems))) == 3
    assert store.revision() == 1
    assert len(config_service.change("me", make_true(document, no_problems))) == 3
    assert config_service.change("me", make_true(document, no_problems)) == []
    assert store.revision() == 2
    assert [entry.record.name for entry in store.read().tokens.values()] == ["t"]


def test_differences_lead_from_any_configuration_to_any_other() -> None:
    known = everything()
    wanted, _ = applied(
        Configuration(), [Put(zone("z9")), Put(room("r1", host="r1.z9.example"), "z9")], 1
    )
    wanted = wanted.with_indexes(
        wanted.revision, {"token": dict(known.tokens), "account": dict(known.accounts)}
    )
    after, _ = applied(known, differences(known, wanted, 2), 2)
    assert contents(after) == contents(wanted)
    assert ListItem not in {type(record) for _, record, _ in contents(after)}
