"""Replaces the processes of an older greenroom by this one, one after the other, under a crowd, with
the ledger in Redis: no place may be lost, no request refused, no limit passed.

    python bench/rolling_upgrade.py --old COMMIT [--visitors 2000] [--processes 2]

All processes listen on one socket, as under systemd; a new one starts before its predecessor is
told to stop. Exits 1 when anybody who stayed was not let in, a connection was refused, a request got
no answer, or a limit was certainly passed.
"""

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crowd import Connection, Crowd, Visitor
from earlier import ROOT, greenroom_at

ROOM = """
origin = "http://127.0.0.1:{origin}"
[[rooms]]
name = "sale"
host = "*"
total_active_users = {total}
new_users_per_minute = {rate}
session_duration = 1
confirm_newcomers = false
"""
NOW = [str(ROOT / ".venv" / "bin" / "greenroom")]
REST_S = 5.0


class CarefulCrowd(Crowd):
    """A request on a kept connection that closes without a byte is sent again on a new one, as
    browsers do; `again` counts them.
    """

    again = refused = lost = 0

    async def visit(self, connection: Connection, visitor: Visitor) -> float | None:
        try:
            return await super().visit(connection, visitor)
        except ConnectionError:
            self.again += 1
        try:
            fresh = Connection()
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: fresh, self.options.host, self.options.port)
        except OSError:
            self.refused += 1
            raise
        try:
            return await super().visit(fresh, visitor)
        except (ConnectionError, TimeoutError):
            self.lost += 1
            raise
        finally:
            if fresh.transport:
                fresh.transport.close()


def start(
    command: Sequence[str], file: Path, redis: str, listener: socket.socket
) -> subprocess.Popen[str]:
    """Ready when it returns."""
    folder = file.parent / "data"
    options = ["edge", "--config", file, "--redis", redis, "--data", folder]
    told = f"import os, sys; os.dup2({listener.fileno()}, 3); os.set_inheritable(3, True)"
    told += "; os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1', LISTEN_FDNAMES='visitors')"
    told += "; os.execvp(sys.argv[1], sys.argv[1:])"
    arguments = [*command, *map(str, options), "--control", "127.0.0.1:0"]
    running = subprocess.Popen(
        [sys.executable, "-c", told, *arguments],
        pass_fds=(listener.fileno(),),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout
    for line in running.stdout:
        if line.strip() == "ready":
            return running
    raise SystemExit(f"{command[0]} did not start")


async def replace_all(
    running: list[subprocess.Popen[str]], file: Path, redis: str, listener: socket.socket
) -> None:
    for index, old in enumerate(running):
        await asyncio.sleep(REST_S)
        running[index] = await asyncio.to_thread(start, NOW, file, redis, listener)
        old.send_signal(signal.SIGTERM)
        await asyncio.to_thread(old.wait)
        print(json.dumps({"replaced": index + 1}), flush=True)


async def story(options: argparse.Namespace, old: Sequence[str], folder: Path) -> dict[str, object]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    options.port = listener.getsockname()[1]
    (place,) = (socket.create_server(("127.0.0.1", 0)),)
    options.origin_port = place.getsockname()[1]
    place.close()
    unix = folder / "redis.sock"
    redis = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", unix, "--dir", folder, "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    file = folder / "greenroom.toml"
    file.write_text(ROOM.format(origin=options.origin_port, total=options.total, rate=options.rate))
    running: list[subprocess.Popen[str]] = []
    try:
        while not unix.exists():
            await asyncio.sleep(0.05)
        for _ in range(options.processes):
            one = await asyncio.to_thread(start, old, file, f"unix://{unix}", listener)
            running.append(one)
        crowd = CarefulCrowd(options)
        replacing = asyncio.create_task(replace_all(running, file, f"unix://{unix}", listener))
        report = await crowd.run()
        await replacing
        return {**report, "sent_again": crowd.again, "refused": crowd.refused, "lost": crowd.lost}
    finally:
        for one in running:
            one.kill()
            one.wait()
        redis.kill()
        redis.wait()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", required=True, metavar="COMMIT")
    parser.add_argument("--visitors", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--total", type=int, default=600)
    parser.add_argument("--rate", type=int, default=900)
    options = parser.parse_args(
        namespace=argparse.Namespace(
            host="127.0.0.1",
            arrive_over_s=20,
            quitters=0.0,
            session_s=60,
            for_s=float("inf"),
            pid=0,
            seed=1,
        )
    )
    with greenroom_at(options.old) as old, tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(story(options, old, Path(folder)))
    print(json.dumps(report, indent=1))
    bad = ("stayed_but_not_let_in", "refused", "lost", "errors")
    limits = report["most_active"] > options.total or report["most_in_60_s"] > options.rate  # type: ignore[operator]
    return int(limits or any(report[name] for name in bad))


if __name__ == "__main__":
    sys.exit(main())
