"""Rooms of one configuration file beside each other: what two may not share, and what keeps an id."""

import pytest
from config_texts import only_problem, problems

from greenroom.config_file.documents import room_id
from greenroom.config_file.load import read_config

ROOM = '[[rooms]]\nname = "{name}"\nhost = "{host}"\npath = "{path}"\ntotal_active_users = 1\nnew_users_per_minute = 1\n{more}\n'


def two_rooms(first: dict[str, str], second: dict[str, str]) -> str:
    return 'origin = "http://o"\n' + "".join(
        ROOM.format(**{"path": "/", "host": "a.example.com", "more": "", **room})
        for room in (first, second)
    )


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            {"name": "a"},
            {"name": "a", "path": "/x"},
            "line 10: rooms[1].name: there is a waiting room a already",
        ),
        (
            {"name": "a"},
            {"name": "b"},
            "line 11: rooms[1].host: a.example.com/ already belongs to waiting room a",
        ),
        (
            {"name": "a", "path": "/x"},
            {"name": "b", "path": "/x/"},
            "already belongs to waiting room a",
        ),
        (
            {"name": "a", "path": "/x"},
            {"name": "b", "path": "/%78"},
            "already belongs to waiting room a",
        ),
        (
            {"name": "a", "path": "/x"},
            {"name": "b", "path": "/X", "more": "case_insensitive_paths = true"},
            "already belongs to waiting room a",
        ),
        (
            {"name": "a", "path": "/x", "more": "id = 'i'"},
            {"name": "b", "more": "id = 'i'"},
            "rooms[1].id: there is a waiting room with the id i already",
        ),
        (
            {"name": "a", "path": "/x"},
            {"name": "b", "more": f"id = '{room_id('a')}'"},
            f"there is a waiting room with the id {room_id('a')} already",
        ),
    ],
)
def test_rooms_that_claim_the_same_are_refused(
    first: dict[str, str], second: dict[str, str], said: str
) -> None:
    assert any(said in problem for problem in problems(two_rooms(first, second)))


def test_rooms_whose_cookies_would_overwrite_one_another_are_refused() -> None:
    routes = (
        "additional_routes = [{{ host = 'b.example.com', path = '/{path}' }}]\ncookie_suffix = 's'"
    )
    text = two_rooms(
        {"name": "a", "path": "/x/1", "more": routes.format(path="x/2")},
        {"name": "b", "path": "/x/3", "more": routes.format(path="x/4")},
    )
    assert "rooms[1].cookie_suffix: must differ from that of waiting room a" in only_problem(text)


def test_what_two_rooms_or_events_may_not_share_is_said_beside_other_problems() -> None:
    routes = (
        "additional_routes = [{{ host = 'b.example.com', path = '/{path}' }}]\ncookie_suffix = 's'\n"
        "queueing_method = 'luck'"
    )
    event = (
        "\n[[rooms.events]]\nname = '{name}'\nevent_start_time = 2030-01-01T10:00:00Z\n"
        "event_end_time = 2030-01-01T12:00:00Z\nsession_duration = 0"
    )
    text = two_rooms(
        {"name": "a", "path": "/x/1", "more": routes.format(path="x/2")},
        {
            "name": "b",
            "path": "/x/3",
            "more": routes.format(path="x/4") + "".join(event.format(name=n) for n in "cd"),
        },
    )
    found = {problem.split(": ")[1] for problem in problems(text)}
    assert found == {
        "rooms[0].queueing_method",
        "rooms[1].queueing_method",
        "rooms[1].cookie_suffix",
        "rooms[1].events[0].session_duration",
        "rooms[1].events[1].session_duration",
        "rooms[1].events[1]",
    }


def test_rooms_inside_one_another_are_fine() -> None:
    assert len(read_config(two_rooms({"name": "a"}, {"name": "b", "path": "/x"})).rooms) == 2


def test_paths_that_differ_in_case_are_two_rooms() -> None:
    assert (
        len(read_config(two_rooms({"name": "a", "path": "/X"}, {"name": "b", "path": "/x"})).rooms)
        == 2
    )


def test_a_room_keeps_its_id_wherever_it_stands_in_the_file() -> None:
    one, two = {"name": "a"}, {"name": "b", "path": "/x"}
    ids = [
        {room.name: room.id for room in read_config(two_rooms(*order)).rooms}
        for order in ((one, two), (two, one))
    ]
    assert ids[0] == ids[1]
    assert ids[0]["a"] != ids[0]["b"]
