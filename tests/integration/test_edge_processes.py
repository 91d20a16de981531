"""Several greenroom processes that share their books: edges with one Redis, and workers of one
machine with a private one.
"""

import contextlib
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import redis
from admission_world import small_room, ticket_id
from ports import free_port
from redis_twin import Twin
from redis_world import TRIAL_LIBRARY, RedisServer

from greenroom.model.visit import Standing
from greenroom.runtime.workers import Foreman, PrivateRedis, Worker

ROOM = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = {active}\nnew_users_per_minute = 1000\n'


def edge(greenroom, server: RedisServer, origin: str, name: str) -> Any:
    text = f'origin = "{origin}"\n' + ROOM.format(active=2)
    return greenroom.edge(server.url, text, name).wait_until_ready()


def test_edges_on_two_machines_are_one_waiting_room(greenroom, origin, server: RedisServer) -> None:
    one, other = (edge(greenroom, server, origin.url, name) for name in ("one", "other"))
    assert f"ledgers    {server.url}" in one.output
    inside = []
    for running in (one, other, one, other):
        visitor = running.visitor()
        visitor.wait_until_in() if len(inside) < 2 else visitor.get()
        inside.append(visitor)
    assert origin.requests == ["GET /"] * 2
    first, _, third, _ = inside
    first.address, third.address = other.address, other.address
    first.wait_until_in("/x")  # the room is full: a ticket of one machine opens at the other
    held = third.get()
    assert held.waiting
    greenroom.eventually(lambda: other.room()["active_users"] == 2, "figures are those of all")
    other.kill()
    first.address = one.address
    first.wait_until_in("/y")
    assert one.stop() == 0


def test_while_redis_is_away_visitors_wait_and_then_it_goes_on(
    greenroom, origin, server: RedisServer
) -> None:
    running = edge(greenroom, server, origin.url, "one")
    running.visitor().wait_until_in()
    server.kill()
    held = running.visitor().get()
    assert (held.status, held.waiting) == (200, True)
    greenroom.eventually(lambda: running.room()["storage_failed"], "it says so")
    server.start()
    greenroom.eventually(lambda: not running.room()["storage_failed"], "it goes on")


def test_an_edge_needs_a_redis(greenroom, origin) -> None:
    path = greenroom.folder / "c.toml"
    path.write_text(f'origin = "{origin.url}"\n' + ROOM.format(active=1))
    running = greenroom.run("edge", "--config", str(path), "--data", str(greenroom.data))
    assert running.end() == 2
    assert "--redis is required" in running.output
    wrong = greenroom.run(
        "edge", "--config", str(path), "--redis", "http://x", "--data", str(greenroom.data)
    )
    assert wrong.end() == 1
    assert "must begin with redis://" in wrong.output


def workers_of(running) -> list[int]:
    children = (
        Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
    )
    return [
        int(one) for one in children if b"--worker" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]


def redis_of(running) -> int:
    children = (
        Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
    )
    return next(
        int(one) for one in children if b"redis-server" in Path(f"/proc/{one}/cmdline").read_bytes()
    )


def two_free_ports() -> int:
    """The first of two neighbours."""
    while True:
        first = free_port()
        with socket.socket() as second, contextlib.suppress(OSError, OverflowError):
            second.bind(("127.0.0.1", first + 1))
            return first


def two_workers(greenroom, origin, control: int) -> list[str]:
    return [
        *("--origin", origin.url, "--total-active-users", "3", "--new-users-per-minute", "1000"),
        *("--listen", "127.0.0.1:0", "--control", f"127.0.0.1:{control}"),
        *("--data", str(greenroom.data), "--workers", "2"),
    ]


def test_workers_share_one_address_and_one_room_and_are_started_again(greenroom, origin) -> None:
    control = two_free_ports()
    options = two_workers(greenroom, origin, control)
    running = greenroom.run("serve", *options)
    greenroom.eventually(
        lambda: running.output.count(": ready") == 2, lambda: running.output, within_s=60
    )
    visitors = [running.visitor() for _ in range(6)]
    for visitor in visitors[:3]:
        visitor.wait_until_in()
    assert all(visitor.get().waiting for visitor in visitors[3:])
    assert re.search(rf"worker 2: control    http://127.0.0.1:{control + 1}", running.output)
    for worker in workers_of(running):
        os.kill(worker, signal.SIGKILL)
    visitors[0].wait_until_in()  # a connection waits until a worker is back
    running.wait_until_printed("has been restarted", times=2)
    greenroom.eventually(
        lambda: running.output.count(": ready") == 4, lambda: running.output, within_s=60
    )
    assert len(workers_of(running)) == 2
    for visitor in visitors[:3]:
        visitor.wait_until_in()
    assert running.stop() == 0
    again = greenroom.run("serve", *options)
    greenroom.eventually(
        lambda: again.output.count(": ready") == 2, lambda: again.output, within_s=60
    )
    for visitor in visitors[:3]:
        visitor.address = again.address
        visitor.wait_until_in()  # who was inside is inside after a restart: nobody else fits
    assert again.stop() == 0


def test_a_private_redis_that_cannot_start_at_once_is_started_again_until_it_can(
    greenroom, origin
) -> None:
    options = two_workers(greenroom, origin, two_free_ports())
    running = greenroom.run("serve", *options)
    greenroom.eventually(
        lambda: running.output.count(": ready") == 2, lambda: running.output, within_s=60
    )
    visitor = running.visitor()
    visitor.wait_until_in()
    written, aside = greenroom.data / "redis" / "appendonlydir", greenroom.data / "aside"
    written.rename(aside)
    written.write_text("in the way, as an error of the disk would be")
    os.kill(redis_of(running), signal.SIGKILL)
    running.wait_until_printed("redis-server ended", times=2)
    written.unlink()
    aside.rename(written)
    visitor.wait_until_in()
    assert running.stop() == 0


def test_a_private_redis_goes_on_only_after_a_stop_when_nobody_writes_any_more(
    tmp_path: Path,
) -> None:
    private = PrivateRedis(tmp_path)

    def state() -> dict[str, Any]:
        with redis.Redis(unix_socket_path=private.url.removeprefix("unix://")) as client:
            arguments = 1, twin.place, twin.settings
            return msgspec.msgpack.decode(client.fcall(inspect.decode(), *arguments))

    def starts_again() -> dict[str, Any]:
        private.stop()
        private.start()
        return state()

    inspect = TRIAL_LIBRARY.function("inspect")
    private.start()
    try:
        with redis.Redis(unix_socket_path=private.url.removeprefix("unix://")) as client:
            client.function_load(TRIAL_LIBRARY.source)
            twin = Twin(client, small_room(total_active_users=3, new_users_per_minute=60), 1)
            twin.sync()
            assert twin.arrive(ticket_id(1)).standing is Standing.ADMITTED
        before = state()
        assert before["inside"] == 1
        private.seal()
        assert starts_again() == before | {"life": starts_as(private)}
        again = starts_again()
        assert again["inside"] == 1
        assert again["epoch"] > before["epoch"], "no mark is left: this may be an older copy"
        assert again["closing_until_ms"] > before["closing_until_ms"]
    finally:
        private.stop()


def starts_as(private: PrivateRedis) -> bytes:
    with redis.Redis(unix_socket_path=private.url.removeprefix("unix://")) as client:
        return client.info("server")["run_id"]


def test_workers_without_a_redis_server_say_what_to_install(greenroom, origin) -> None:
    options = two_workers(greenroom, origin, 0)
    running = greenroom.run("serve", *options, env={"PATH": str(greenroom.folder)})
    assert running.end() == 2
    assert "apt-get install redis-server" in running.output


STOPS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP


class Late(Worker):
    """The operator stops everything at the moment when it is started (again)."""

    def start(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        super().start()


def test_a_worker_that_is_started_as_the_signal_comes_ends_as_well() -> None:
    before = {number: signal.getsignal(number) for number in STOPS}
    sleeps = [sys.executable, "-c", "import time; time.sleep(60)"]
    reads, writes = os.pipe()
    try:
        began_s = time.monotonic()
        assert Foreman([Late(1, sleeps, reads)], None, lambda _line: None).run() == 0
        assert time.monotonic() - began_s < 50, "it was told, and did not just come to its end"
    finally:
        os.close(reads)
        os.close(writes)
        for number, handler in before.items():
            signal.signal(number, handler)
