"""Events as they are written in a configuration file."""

from pathlib import Path

import pytest

from greenroom.cli.show import event_lines
from greenroom.config_file.load import read_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.errors import InvalidConfig
from greenroom.model.event import OVERRIDES, Event

ROOM = """
origin = "http://127.0.0.1:3000"
[[rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 200
new_users_per_minute = 200
"""
START_MS = 1_777_629_600_000
SALE = """
[[rooms.events]]
name = "sale"
event_start_time = "2026-05-01T10:00:00Z"
event_end_time = 2026-05-01T12:00:00+00:00
"""


def config(text: str, path: Path | None = None) -> ProcessConfig:
    return read_config(ROOM + text, path)


def event(more: str = "", path: Path | None = None) -> Event:
    (found,) = config(SALE + more, path).documents.events.records()
    return found


def problems(text: str) -> dict[str, str]:
    with pytest.raises(InvalidConfig) as caught:
        config(text)
    return {problem.pointer: problem.reason for problem in caught.value.problems}


def test_times_may_be_quoted_or_not_and_carry_their_zone() -> None:
    found = event("prequeue_start_time = 2026-05-01T11:30:00+02:00")
    assert (found.event_start_ms, found.event_end_ms, found.prequeue_start_ms) == (
        START_MS,
        START_MS + 7_200_000,
        START_MS - 1_800_000,
    )
    assert event().prequeue_start_ms is None


def test_the_id_of_an_event_stays_the_same_so_a_draw_is_known_again() -> None:
    assert event().id == event("description = 'changed'").id
    assert len(event().id) == 32


def test_everything_an_event_may_override_can_be_written_and_what_is_not_written_inherits() -> None:
    written = {
        "total_active_users": "300",
        "new_users_per_minute": "250",
        "session_duration": "5",
        "disable_session_renewal": "false",
        "queueing_method": '"Random"',
        "custom_page_html": '"<p>{{timeUntilEventStart}}</p>"',
        "turnstile_mode": '"off"',
        "turnstile_action": '"log"',
    }
    assert set(written) == set(OVERRIDES)
    found = event("\n".join(f"{key} = {value}" for key, value in written.items()))
    assert all(getattr(found, name) is not None for name in OVERRIDES)
    assert found.queueing_method == "random"
    assert all(getattr(event(), name) is None for name in OVERRIDES)


def test_a_template_may_stand_in_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "soon.html").write_text("<p>{{timeUntilEventStartFormatted}}</p>")
    found = config(SALE + 'custom_page_file = "soon.html"', tmp_path / "greenroom.toml")
    assert (
        next(found.documents.events.records()).custom_page_html
        == "<p>{{timeUntilEventStartFormatted}}</p>"
    )
    assert tmp_path / "soon.html" in found.files


def test_everything_wrong_is_said_at_once_by_the_names_in_the_file() -> None:
    found = problems(
        """
[[rooms.events]]
name = "sale"
event_start_time = "tomorrow"
shuffle_at_event_stat = true
custom_page_html = "{{#open}}"
[[rooms.events]]
name = "short"
event_start_time = 2026-05-01T10:00:00Z
event_end_time = 2026-05-01T10:00:30Z
prequeue_start_time = 2026-05-01T09:58:00Z
total_active_users = 200
"""
    )
    assert "must be a time with a time zone" in found["rooms[0].events[0].event_start_time"]
    assert "is required" in found["rooms[0].events[0].event_end_time"]
    assert (
        "did you mean shuffle_at_event_start?" in found["rooms[0].events[0].shuffle_at_event_stat"]
    )
    assert "rooms[0].events[0].custom_page_html" in found
    assert "one minute" in found["rooms[0].events[1].event_end_time"]
    assert "five minutes" in found["rooms[0].events[1].prequeue_start_time"]
    assert "together" in found["rooms[0].events[1].new_users_per_minute"]


def test_a_time_without_a_zone_is_refused() -> None:
    assert "zone" in problems(SALE.replace("+00:00", ""))["rooms[0].events[0].event_end_time"]


def test_events_of_one_room_must_not_overlap() -> None:
    assert "overlap" in problems(SALE + SALE.replace('"sale"', '"other"'))["rooms[0].events[1]"]
    assert "[[rooms.events]]" in problems("events = 3")["rooms[0].events"]


def test_check_says_what_events_do() -> None:
    found = config(
        SALE
        + 'prequeue_start_time = "2026-05-01T08:00:00Z"\nshuffle_at_event_start = true\nqueueing_method = "random"\n'
    )
    assert event_lines(found.documents.events.records()) == [
        "  event sale: 2026-05-01T10:00:00Z to 2026-05-01T12:00:00Z, pre-queue from 2026-05-01T08:00:00Z, places drawn at the start",
        "    queueing_method = random",
    ]
