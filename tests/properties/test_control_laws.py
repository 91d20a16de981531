"""Laws of what operators write down: what is read can be written back, an edit is a whole with a
difference, and nothing is lost.
"""

import string
from typing import Any

from config_service_in_memory import DeskInMemory
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.configuration import (
    events,
    rooms,
    rules,
    zones,
)
from greenroom.model.room import LANGUAGES, METHODS
from greenroom.web.time_format import milliseconds, moment, plain_moment

EXAMPLES = 60
names = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=20)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0{}"), max_size=30)
paths = st.lists(st.sampled_from(["shop", "a", "Sale", "x.y", "%20"]), max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)
routes = st.fixed_dictionaries(
    {"host": st.sampled_from(["www.example.com", "b.example.com"]), "path": paths}
)

OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "path": paths,
    "session_duration": st.integers(1, 30),
    "disable_session_renewal": st.booleans(),
    "queueing_method": st.sampled_from(METHODS),
    "queueing_status_code": st.sampled_from([200, 202, 429]),
    "queue_all": st.booleans(),
    "suspended": st.booleans(),
    "description": texts,
    "custom_page_html": texts,
    "default_template_language": st.sampled_from(LANGUAGES),
    "json_response_enabled": st.booleans(),
    "cookie_attributes": st.fixed_dictionaries(
        {}, optional={"samesite": st.sampled_from(["auto", "lax", "strict"])}
    ),
    "enabled_origin_commands": st.sampled_from([[], ["revoke"]]),
    "additional_routes": st.lists(
        routes, max_size=2, unique_by=lambda route: (route["host"], route["path"])
    ),
    "greenroom": st.fixed_dictionaries(
        {},
        optional={
            "case_insensitive_paths": st.just(False),
            "refresh_max_seconds": st.integers(2, 60),
        },
    ),
}
OVERRIDES: dict[str, st.SearchStrategy[Any]] = {
    "session_duration": st.none() | st.integers(1, 30),
    "disable_session_renewal": st.none() | st.booleans(),
    "queueing_method": st.none() | st.sampled_from(METHODS),
    "custom_page_html": st.none() | texts,
    "turnstile_mode": st.sampled_from([None, "off"]),
    "description": texts,
    "suspended": st.booleans(),
}


@st.composite
def whole_rooms(draw: st.DrawFn) -> dict[str, Any]:
    most = draw(st.integers(200, 10_000))
    needed = {
        "name": draw(names),
        "host": "shop.example.com",
        "total_active_users": most,
        "new_users_per_minute": draw(st.integers(200, most)),
    }
    return {**needed, "cookie_suffix": "x", **draw(st.fixed_dictionaries({}, optional=OPTIONAL))}


def desk_with_zone() -> tuple[DeskInMemory, str]:
    config_service = DeskInMemory()
    return config_service, config_service.do(
        zones.create({"name": "example.com"}, lambda _pointer, _url: [])
    )["id"]


def without_clock(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "modified_on"}


def said(document: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether everything in a document is in the answer, objects by their parts; no additional
    routes are null.
    """
    return all(
        said(value, answer[name])
        if isinstance(value, dict)
        else answer[name] == (value or None if name == "additional_routes" else value)
        for name, value in document.items()
    )


@settings(max_examples=examples(EXAMPLES))
@given(document=whole_rooms())
def test_a_room_comes_back_as_it_was_written_and_writing_it_back_changes_nothing(document) -> None:
    config_service, zone = desk_with_zone()
    made = config_service.do(rooms.create(zone, document))
    assert said(document, made)
    before = config_service.known
    assert config_service.do(rooms.change(zone, made["id"], made, whole=True)) == made
    assert config_service.do(rooms.change(zone, made["id"], document, whole=True)) == made
    assert config_service.do(rooms.change(zone, made["id"], {}, whole=False)) == made
    assert config_service.known is before


@settings(max_examples=examples(EXAMPLES))
@given(document=whole_rooms(), other=whole_rooms())
def test_replacing_forgets_what_was_there_and_editing_keeps_what_is_not_named(
    document, other
) -> None:
    config_service, zone = desk_with_zone()
    made = config_service.do(rooms.create(zone, document))
    fresh_desk, fresh_zone = desk_with_zone()
    fresh = fresh_desk.do(rooms.create(fresh_zone, other))
    replaced = config_service.do(rooms.change(zone, made["id"], other, whole=True))
    own = {"id", "created_on", "modified_on"}
    assert {name: value for name, value in replaced.items() if name not in own} == {
        name: value for name, value in fresh.items() if name not in own
    }
    edited = config_service.do(rooms.change(zone, made["id"], document, whole=False))
    assert said(document, edited)
    assert (
        without_clock(edited).items()
        >= {
            name: value
            for name, value in replaced.items()
            if name not in {*document, "modified_on"}
        }.items()
    )


@settings(max_examples=examples(EXAMPLES))
@given(
    fields=st.fixed_dictionaries({}, optional=OVERRIDES),
    edit=st.fixed_dictionaries({}, optional=OVERRIDES),
)
def test_null_false_and_empty_stay_apart_in_events_and_details_have_no_nulls(fields, edit) -> None:
    config_service, zone = desk_with_zone()
    limits = {"total_active_users": 300, "new_users_per_minute": 200}
    room = config_service.do(
        rooms.create(
            zone, {"name": "r", "host": "shop.example.com", "custom_page_html": "own", **limits}
        )
    )
    times = {"event_start_time": "2030-01-01T11:00:00Z", "event_end_time": "2030-01-01T12:00:00Z"}
    made = config_service.do(events.create(zone, room["id"], {"name": "e", **times, **fields}))
    assert said(fields, made)
    edited = config_service.do(events.change(zone, room["id"], made["id"], edit, whole=False))
    assert without_clock(edited) == without_clock({**made, **edit})
    details = events.details(
        config_service.known, events.event_of(config_service.known, zone, room["id"], made["id"])
    )
    for name in (
        "session_duration",
        "disable_session_renewal",
        "queueing_method",
        "custom_page_html",
        *limits,
    ):
        assert details[name] == (room[name] if edited[name] is None else edited[name])
        assert details[name] is not None


@settings(max_examples=examples(EXAMPLES))
@given(
    order=st.permutations("abcdef"),
    place=st.integers(0, 8),
    neighbour=st.sampled_from(["", "b", "c", "d", "e", "f"]),
    word=st.sampled_from(["before", "after"]),
)
def test_a_rule_that_moves_leaves_the_others_in_their_order(order, place, neighbour, word) -> None:
    config_service, zone = desk_with_zone()
    limits = {"total_active_users": 300, "new_users_per_minute": 200}
    room = config_service.do(
        rooms.create(zone, {"name": "r", "host": "shop.example.com", **limits})
    )["id"]
    found = config_service.do(
        rules.replace_all(
            zone,
            room,
            [
                {"action": "bypass_waiting_room", "expression": "ssl", "description": one}
                for one in order
            ],
        )
    )
    ids = {rule["description"]: rule["id"] for rule in found}
    others = [one for one in order if one != "a"]
    moved = config_service.do(rules.edit(zone, room, ids["a"], {"position": {"index": place}}))
    wanted = others[:]
    wanted.insert(max(place, 1) - 1, "a")
    assert [rule["description"] for rule in moved] == wanted
    moved = config_service.do(
        rules.edit(zone, room, ids["a"], {"position": {word: ids.get(neighbour, "")}})
    )
    at = (
        others.index(neighbour) + (word == "after")
        if neighbour
        else (len(others) if word == "after" else 0)
    )
    others.insert(at, "a")
    assert [rule["description"] for rule in moved] == others
    assert all(rule["version"] == "1" for rule in moved)


@given(at_ms=st.integers(0, 253_402_300_799_999))
def test_a_time_that_was_written_is_read_as_the_same_moment(at_ms) -> None:
    assert milliseconds(moment(at_ms)) == milliseconds(plain_moment(at_ms)) == at_ms


@given(
    text=st.text(max_size=40)
    | st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
    )
)
def test_no_text_breaks_the_reading_of_times(text) -> None:
    found = milliseconds(text)
    assert found is None or found >= 0
