"""A room that follows its origin, in a running process: the origin fails, admissions stop within ten
seconds, and an operator takes the limit over.
"""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from redis_world import RedisServer
from typer.testing import CliRunner

from greenroom.capacity import Histogram
from greenroom.capacity.measurement import Measurement, ProcessReport
from greenroom.capacity.room_capacity import CapacityState, Proposal
from greenroom.capacity.sources import NO_SOURCE
from greenroom.cli.commands import app
from greenroom.ledgers.redis.capacity import RedisCapacity
from greenroom.ledgers.redis.link import Link

CONFIG = """
origin = "{origin}"
data = "{data}"

[[rooms]]
name = "shop"
host = "*"
total_active_users = 40
new_users_per_minute = 40
confirm_newcomers = false
capacity = "follow"
floor = 5
"""


class Works(BaseHTTPRequestHandler):
    pause_s = 0.0

    def do_GET(self) -> None:
        time.sleep(self.pause_s)  # what it is for
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None: ...


class Slow(Works):
    """Takes three times the objective for a document."""

    pause_s = 0.3


@contextlib.contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def slow_origin() -> Iterator[str]:
    with served(Slow) as url:
        yield url


def test_admissions_stop_when_the_origin_fails_and_go_on_when_somebody_takes_over(
    greenroom, tmp_path
) -> None:
    file = tmp_path / "follows.toml"
    with served(Works) as url:
        text = CONFIG.format(origin=url, data=greenroom.data)
        file.write_text(text)
        running = greenroom.config(text)
        assert running.room("shop")["total_active_users"] == 40
        visitors = [running.visitor() for _ in range(4)]
        for visitor in visitors:
            greenroom.eventually(lambda one=visitor: one.get().text == "ok", "a visitor is inside")
    inside, began_s = visitors[0], time.monotonic()
    assert [inside.get().status for _ in range(4)] == [502] * 4
    assert [visitor.get().status for visitor in visitors] == [502] * 4

    def stopped() -> bool:
        found = running.room("shop")["capacity"]
        return bool(found and found["stopped"])

    greenroom.eventually(stopped, "admissions stop")
    assert time.monotonic() - began_s < 30
    late = running.visitor()
    page = late.get()
    assert page.status == 200
    assert "The site is recovering" in page.text
    assert inside.get().status == 502, "who is inside stays inside"
    assert running.metric('greenroom_room_held_for_slow_origin{room="shop"}') == 1
    assert 0 < running.metric('greenroom_room_capacity_target_sessions{room="shop"}') <= 10
    running.wait_until_printed("of documents failed: admissions stop")

    def operate(*words: str) -> str:
        done = CliRunner().invoke(app, ["room", "take-over", "shop", *words, "--config", str(file)])
        return done.output if done.exit_code else ""

    assert "count: must be a number from 1 to 40" in operate("--limit", "41")
    assert operate() == ""
    greenroom.eventually(lambda: late.get().status == 502, "who waits is admitted")
    settings = running.room("shop")
    assert (settings["capacity"], settings["total_active_users"] <= 10) == (None, True)
    assert operate("--end") == ""
    greenroom.eventually(lambda: running.room("shop")["capacity"], "the room follows again")


async def test_processes_exchange_reports_and_states_through_redis(server: RedisServer) -> None:
    measured = Measurement(
        documents=Histogram.of([3, 700, 90_000]), failed=2, pending=Histogram.of([40]), active=9
    )
    report = ProcessReport(at_ms=1_790_000_000_000, rooms={"r": measured}, overloaded=True)
    state = CapacityState(
        mode="suggest",
        sessions=90,
        limit=80,
        stopped=True,
        reason="p95",
        measured_ms=1,
        proposal=Proposal(90, "p95", 5),
    )
    async with contextlib.AsyncExitStack() as ending:
        one, other = (RedisCapacity(Link(server.url).client(2.0), name) for name in "ab")
        for exchange in (one, other):
            ending.push_async_callback(exchange.close)
        assert (await one.reports(), await one.states()) == ({}, {})
        await one.report(report)
        await other.report(report)
        await one.publish({"r": state})
        assert await other.reports() == {"a": report, "b": report}
        assert await other.states() == {"r": state}
        await one.withdraw()
        assert await other.reports() == {"b": report}
        await one.withdraw("b")
        assert await other.reports() == {}


def test_processes_apply_one_target_which_does_not_grow_when_the_one_that_leads_is_killed(
    greenroom, slow_origin, server: RedisServer
) -> None:
    path = greenroom.folder / "edges.toml"
    room = CONFIG.partition("[[rooms]]")[2] + "objective_ms = 100\n"
    path.write_text(f'origin = "{slow_origin}"\n[[rooms]]{room}')

    def edge(name: str):
        places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
        data = ("--data", str(greenroom.folder / name))
        environment = {"GREENROOM_REDIS": server.url}
        return greenroom.run("edge", "--config", str(path), *places, *data, env=environment)

    edges = [edge(name).wait_until_ready() for name in ("one", "other")]

    def leads(running) -> bool:
        return running.metric("greenroom_sync_leader") == 1

    greenroom.eventually(lambda: any(map(leads, edges)), "one leads")
    leader, other = sorted(edges, key=leads, reverse=True)

    def told_at(running) -> dict:
        return running.room("shop")["capacity"] or {}

    inside = [other.visitor() for _ in range(8)]
    for visitor in inside:
        greenroom.eventually(lambda one=visitor: one.get().text == "ok", "a visitor is inside")

    def both() -> bool:
        """What one process measures stops admissions at all."""
        for visitor in inside:
            visitor.get()
        one, another = (told_at(running) for running in edges)
        return one == another and one.get("stopped", False)

    greenroom.eventually(both, "admissions stop at both")
    for running in edges:
        assert "The site is recovering" in running.visitor().get().text
    before = told_at(other)["sessions"]
    leader.kill()

    def unmeasured() -> bool:
        """The process that was killed no longer reports, so another one runs the law unseeing."""
        now = told_at(other)
        assert (now["sessions"] <= before, now["stopped"]) == (True, True), now
        return now["reason"].startswith("the newest figures of process ")

    greenroom.eventually(unmeasured, "the other process runs the law")
    assert leads(other)


def test_a_process_that_only_decides_follows_what_is_pushed_and_holds_when_that_ends(
    greenroom,
) -> None:
    text = CONFIG.replace('origin = "{origin}"', 'trusted_proxies = ["127.0.0.1"]')
    file = greenroom.folder / "decides.toml"
    file.write_text(text.format(data=greenroom.data))
    places = ("--config", str(file), "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
    refused = greenroom.run("decide", *places)
    assert refused.end() == 1
    assert NO_SOURCE in refused.output
    file.write_text(text.format(data=greenroom.data) + 'capacity_metrics = "push"\n')
    running = greenroom.run("decide", *places).wait_until_ready()
    made = CliRunner().invoke(
        app, ["token", "create", "exporter", "--scope", "edit", "--data", str(greenroom.data)]
    )
    headers = {
        "Authorization": f"Bearer {max(made.stdout.split(), key=len)}",
        "Content-Type": "text/plain",
    }
    control = running.control_visitor()

    def one(path: str) -> str:
        (found,) = json.loads(control.get(path, headers=headers).body)["result"]
        return f"{path}/{found['id']}"

    path = one(one("/client/v4/zones") + "/waiting_rooms") + "/capacity"
    name, counts = "http_request_duration_seconds_bucket", [0, 0]

    def capacity() -> dict:
        return running.room("shop")["capacity"] or {}

    def push(fast: int, slow: int) -> None:
        counts[0] += fast
        counts[1] += fast + slow
        lines = [f'{name}{{le="{le}"}} {n}' for le, n in zip(("0.1", "+Inf"), counts, strict=True)]
        answer = control.get(f"{path}/figures", "POST", headers, "\n".join(lines).encode())
        assert answer.status == 200, answer.text

    def follows() -> bool:
        push(100, 0)
        return "documents" in capacity().get("reason", "")

    def stopped() -> bool:
        push(0, 100)
        return capacity().get("stopped", False)

    greenroom.eventually(follows, "what is pushed counts")
    greenroom.eventually(stopped, "admissions stop")
    before = capacity()
    greenroom.eventually(
        lambda: capacity()["reason"].startswith("the newest figures of instance "),
        "the exporter is silent",
    )
    assert capacity()["sessions"] <= before["sessions"]
    assert capacity()["stopped"]


def test_a_process_that_only_decides_follows_the_health_check_of_its_host(
    greenroom, slow_origin
) -> None:
    """Every probe takes three times the objective."""
    text = CONFIG.replace('origin = "{origin}"', 'trusted_proxies = ["127.0.0.1"]')
    text = text.replace('host = "*"', 'host = "127.0.0.1"') + "objective_ms = 100\n"
    file = greenroom.folder / "checks.toml"
    file.write_text(
        text.format(data=greenroom.data)
        + '[[health_checks]]\nname = "shop"\naddress = "127.0.0.1"\ninterval = 5\n'
        f'[health_checks.http_config]\nport = {slow_origin.rpartition(":")[2]}\npath = "/"\n'
    )
    places = ("--config", str(file), "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
    running = greenroom.run("decide", *places).wait_until_ready()

    def stopped() -> bool:
        found = running.room("shop")["capacity"] or {}
        return found.get("stopped", False) and "over the objective" in found["reason"]

    greenroom.eventually(stopped, "admissions stop")
