"""A whole configuration with any number of wrong values: every one is reported, and nothing else."""

import copy
from itertools import count
from typing import Any

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.config_file.load import config_of
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.configuration import Configuration
from greenroom.transfer.export_import import make_true
from greenroom.web.config_service import ChangeContext
from greenroom.web.refusals import Refused

Place = tuple[str | int, ...]
NUMBERS = count()
LIMITS = {"total_active_users": 20, "new_users_per_minute": 20}


def event(name: str, year: int) -> dict[str, Any]:
    return {
        "name": name,
        "event_start_time": f"{year}-01-01T10:00:00Z",
        "event_end_time": f"{year}-01-01T12:00:00Z",
    }


def room(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "host": f"{name}.example.com",
        "path": "/",
        **LIMITS,
        "events": [event("sale", 2030), event("later", 2031)],
        "rules": [{"action": "bypass_waiting_room", "expression": "ip.src in $office"}],
    }


CHECK = {"name": "up", "address": "www.example.com"}
PAGE = {"host": "status.example.com", "path": "/", "listen": "127.0.0.1:8090"}
POLICY = {"name": "p", "alert_type": "greenroom_queueing"}
WEBHOOK = {"name": "w", "url": "https://example.com/x"}

WHOLE = {
    "lists": [{"name": "office", "kind": "ip", "items": [{"ip": "192.0.2.1"}]}],
    "zones": [
        {
            "name": "example.com",
            "greenroom": {"limit_floor": 10, "origin": "http://o.example"},
            "settings": {},
            "waiting_rooms": [room("a"), room("b")],
            "health_checks": [CHECK],
        }
    ],
    "webhooks": [WEBHOOK],
    "alert_policies": [{**POLICY, "mechanisms": {}}],
    "status_pages": [PAGE],
}
FILE = {
    "origin": "http://o.example",
    "lists": [{"name": "office", "kind": "ip", "items": ["192.0.2.1"]}],
    "rooms": [room("a"), room("b")],
    "health_checks": [CHECK],
    "webhooks": [WEBHOOK],
    "alert_policies": [POLICY],
    "status_pages": [PAGE],
}

OF_ROOM: dict[Place, Any] = {
    ("total_active_users",): 0,
    ("session_duration",): "long",
    ("queueing_method",): "luck",
    ("name",): "a b",
    ("host",): "a*.example.com",
    ("path",): "a",
    ("rooms_are_nice",): True,
    ("events", 0, "session_duration"): -1,
    ("events", 0, "event_start_time"): "soon",
    ("events", 1, "name"): "",
    ("rules", 0, "expression"): "ip.src in $nowhere",
    ("rules", 0, "description"): 5,
}
BESIDE: dict[Place, Any] = {
    ("lists", 0, "description"): "x" * 5_000,
    ("health_checks", 0, "interval"): -1,
    ("webhooks", 0, "url"): "ftp://example.com",
    ("alert_policies", 0, "alert_interval"): "soon",
    ("status_pages", 0, "path"): "status",
}
OF_ZONE: dict[Place, Any] = {
    ("greenroom", "limit_floor"): -1,
    ("greenroom", "session_ceiling"): 0,
    ("greenroom", "origin"): 5,
    ("settings", "search_engine_crawler_bypass"): "yes",
    ("name",): "not a domain",
    ("nonsense",): 1,
}
ZONE: Place = ("zones", 0)
IN_WHOLE: dict[Place, Any] = (
    {ZONE + place: value for place, value in OF_ZONE.items()}
    | {
        (*ZONE, "waiting_rooms", index, *place): value
        for index in (0, 1)
        for place, value in OF_ROOM.items()
    }
    | {place if place[0] != "health_checks" else ZONE + place: v for place, v in BESIDE.items()}
)
IN_FILE: dict[Place, Any] = {
    ("rooms", index, *place): value for index in (0, 1) for place, value in OF_ROOM.items()
} | BESIDE


def spoiled(right: Any, places: set[Place], wrong: dict[Place, Any]) -> Any:
    document = copy.deepcopy(right)
    for place in places:
        *above, name = place
        inner = document
        for step in above:
            inner = inner[step]
        inner[name] = wrong[place]
    return document


def pointers_of_whole(document: Any) -> set[str]:
    def no_problems(_pointer: str, _url: str) -> list[Problem]:
        return []

    moment = ChangeContext(1_700_000_000_000, lambda: f"new-{next(NUMBERS)}")
    try:
        make_true(document, no_problems)(Configuration(), moment)
    except Refused as refused:
        return {fault.pointer for fault in refused.faults}
    return set()


def pointers_of_file(document: Any) -> set[str]:
    try:
        config_of(document)
    except InvalidConfig as error:
        return {
            "/" + problem.pointer.replace("[", "/").replace("]", "").replace(".", "/")
            for problem in error.problems
        }
    return set()


def pointers(places: set[Place]) -> set[str]:
    return {"".join(f"/{step}" for step in place) for place in places}


def test_what_is_spoiled_here_is_right_at_first() -> None:
    assert pointers_of_whole(WHOLE) == set()
    assert pointers_of_file(FILE) == set()


@settings(max_examples=examples(40), deadline=None)
@given(st.sets(st.sampled_from(sorted(IN_WHOLE, key=str))))
def test_applying_a_whole_configuration_finds_every_problem_and_no_other(
    places: set[Place],
) -> None:
    assert pointers_of_whole(spoiled(WHOLE, places, IN_WHOLE)) == pointers(places)


@settings(max_examples=examples(40), deadline=None)
@given(st.sets(st.sampled_from(sorted(IN_FILE, key=str))))
def test_checking_a_file_finds_every_problem_and_no_other(places: set[Place]) -> None:
    assert pointers_of_file(spoiled(FILE, places, IN_FILE)) == pointers(places)
