"""Events from a file in a running greenroom: the pre-queue, the draw, and a kill -9 before or after
it.
"""

import json
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis_world import RedisServer

from greenroom.cli import verify_draw

VISITORS = 6
LEAD_S = 10
"""From the opening of the pre-queue in these tests to its end, enough for everybody to take a place;
and five times what the machine needs for a start.
"""


def at(seconds_from_now: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds_from_now, UTC).isoformat(
        timespec="milliseconds"
    )


def configuration(origin: str, starts_in_s: float, redis: str = "") -> str:
    """A room with a sale and what comes after it."""
    return f"""
origin = "{origin}"
redis = "{redis}"

[[rooms]]
name = "main"
host = "shop.example.com"
total_active_users = 1
new_users_per_minute = 100
json_response_enabled = true

[[rooms.events]]
name = "sale"
prequeue_start_time = {at(starts_in_s - 300)}
event_start_time = "{at(starts_in_s)}"
event_end_time = {at(starts_in_s + 3600)}
shuffle_at_event_start = true
total_active_users = 2
new_users_per_minute = 60

[[rooms.events]]
name = "over"
event_start_time = {at(starts_in_s + 3600)}
event_end_time = {at(starts_in_s + 7200)}
queueing_method = "reject"
"""


def pause_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))  # events begin by the clock on the wall


def everybody_in_line(running: Any) -> list[Any]:
    crowd = [running.visitor() for _ in range(VISITORS)]
    first = [visitor.get() for visitor in crowd]
    time.sleep(max(answer.refresh_s for answer in first))  # as the pages say
    for visitor in crowd:
        assert visitor.get().waiting
    return crowd


def peek(visitor: Any) -> dict[str, Any]:
    """What the page of a visitor in line says; nothing, if the visitor is let in."""
    answer = visitor.get(headers={"Accept": "application/json"})
    return json.loads(answer.body)["greenroom"] if answer.waiting else {}


def receipt(visitor: Any) -> Any:
    return visitor.get("/?greenroom=receipt")


@pytest.fixture
def redis(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of the Redis that holds the books; empty for a process that keeps its own."""
    if request.param != "books in Redis":
        yield ""
        return
    server = RedisServer(tmp_path / "redis")
    yield server.url
    server.stop()


@pytest.mark.parametrize(
    ("redis", "killed"),
    [
        ("own books", "before the start"),
        ("own books", "after the draw"),
        ("books in Redis", "before the start"),
    ],
    indirect=["redis"],
)
def test_a_kill_in_the_middle_of_a_sale_changes_nothing_about_the_draw(
    greenroom: Any, origin: Any, redis: str, killed: str
) -> None:
    begun = time.monotonic()
    running = greenroom.config(configuration(origin.url, 3600, redis))
    assert running.room()["event"] is None
    lead_s = LEAD_S + 5 * (time.monotonic() - begun)
    text, starts = configuration(origin.url, lead_s, redis), time.monotonic() + lead_s
    (greenroom.folder / "greenroom.toml").write_text(text)
    running.send(signal.SIGHUP)
    greenroom.eventually(
        lambda: (running.room()["event"] or {}).get("phase") == "prequeue", "the pre-queue is open"
    )
    announced = json.loads(running.ask("/draws").body)
    (promised,) = announced["announced"]
    assert (promised["held"], announced["held"]) == (False, [])
    crowd = everybody_in_line(running)
    before = [peek(visitor) for visitor in crowd]
    assert {state["drawCommitment"] for state in before} == {promised["commitment"]}
    assert len({state["receipt"] for state in before}) == VISITORS
    if killed == "after the draw":
        pause_until(starts)
        greenroom.eventually(
            lambda: list((greenroom.data / "draws").glob("*.json")), "the draw is published"
        )
    running.kill()
    draws = list((greenroom.data / "draws").glob("*.json"))
    assert len(draws) == (1 if killed == "after the draw" else 0)
    published = draws[0].read_bytes() if draws else b""
    pause_until(starts + 0.6)
    running = greenroom.config(text)
    for visitor in crowd:
        visitor.address = running.address
    greenroom.eventually(lambda: running.room()["event"]["phase"] == "running", "the draw is held")
    assert json.loads(running.ask("/draws").body)["announced"][0]["held"] is True
    content = running.ask(f"/draws/{promised['draw']}.json").body
    assert published in (b"", content)
    draw = json.loads(content)
    assert list(verify_draw.problems(draw, promised["commitment"])) == []
    places = [verify_draw.place(draw, state["receipt"]) for state in before]
    assert sorted(places) == list(range(1, VISITORS + 1))
    kept = [json.loads(receipt(visitor).body) for visitor in crowd]
    assert [(one["place"], one["of"], one["receipt"]) for one in kept] == [
        (place, VISITORS, state["receipt"]) for place, state in zip(places, before, strict=True)
    ]
    after = [(place, peek(visitor)) for place, visitor in zip(places, crowd, strict=True)]
    inside = [place for place, state in after if not state]
    assert set(inside) <= {1, 2}, "where the machine stood still, the first may be in by now"
    assert all(place - len(inside) <= state["position"] <= place for place, state in after if state)
    late = running.visitor()
    told = {"position": 0}
    while not told["position"]:
        time.sleep(late.get().refresh_s)  # as the page says
        told = peek(late)
    assert (told["receipt"], told["drawnPlace"]) == ("", 0)
    entered = sum(1 for visitor in crowd if not visitor.get().waiting)
    assert told["position"] + entered > VISITORS
    assert running.stop() == 0


def test_the_control_listener_has_the_page_that_checks_and_nothing_where_no_draw_was(
    greenroom: Any, origin: Any
) -> None:
    running = greenroom.config(configuration(origin.url, 3600))
    assert b"crypto.subtle" in running.ask("/draws/verify").body
    assert running.ask(f"/draws/{'0' * 32}.json").status == 404
    assert running.ask("/draws/..%2fkeys.json").status == 404
    room = running.room()
    assert (room["event"], room["draws"][0]["event"]) == (None, "sale")
