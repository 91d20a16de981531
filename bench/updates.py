"""What the requests of a busy room cost, the update of a visitor in line first, beside servers that
do nothing: CPU of the server.

    python bench/updates.py [--waiters 12000] [--rounds 3] [--seconds 1] [--against PATH]

12,000 different waiters stand in line, each with a ticket of its own and the header lines of one of
384 kinds of Chrome; they ask one after the other over 64 connections, so no request repeats one
that could be remembered as a whole. Their tickets are new in each round: one that comes too late
may be of a visitor in front, and then the answer is held. The floors (`bench/floors.py`) are
servers in the same event loop that parse nothing; nginx is a plain proxy. Every server has CPU 0
while it is measured; client and origin have CPU 1 and never sleep (`bench/awake.py`), and rounds
alternate between the contestants. CPU time is what the kernel accounted to the server's process, so
a busy machine disturbs it less than it would a rate, and the ratio to a floor of the same run
least. It takes less than two minutes.
"""

import argparse
import contextlib
import random
import re
import shutil
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from awake import Client
from browser_heads import LINE, browsers, cookie_line, navigating
from gateway import GREENROOM_CONF, NGINX, ORIGIN, PROXY_CONF, running, worker_of

OWN, OTHER = 9111, 9113
PROXY = "nginx, plain proxy"
LIMIT = 100
"""Of the room with a line: it moves now and then, so there are estimates to give."""

INSIDE = 2_000
"""Visitors of the open room."""

TABLE = 10
"""Its own port is so much higher: a third greenroom, whose room has a table of the line."""

TABLE_LINE = b"GET /sale?greenroom=line HTTP/1.1\r\n"

DUE_S = 2.6
"""After this every new ticket is due for a try; two seconds later the first ones are late."""

WARM_S = 1
"""Before each measurement: the waiters take their places."""


class Contestant(NamedTuple):
    """A server and what it is asked; `floor` names the contestant that does nothing but this.
    `line`: so many of these browsers wait.
    """

    port: int
    pid: int
    heads: str
    floor: str
    line: tuple[list[bytes], int] = ([], 0)


def cpu_us(pid: int) -> float:
    """CPU time of a process so far, all its threads together."""
    return (
        sum(
            int((task / "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").iterdir()
        )
        / 1_000
    )


def tickets(port: int, visitors: int) -> list[bytes]:
    """So many newcomers, over one connection; the ticket of each one."""
    kinds, found = navigating(), list[bytes]()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for first in range(0, visitors, 20):
            heads = [
                LINE + kinds[number % len(kinds)] + b"\r\n"
                for number in range(first, min(visitors, first + 20))
            ]
            connection.sendall(b"".join(heads))
            got, seen = list[bytes](), b""
            while len(got) < len(heads):
                seen += connection.recv(1 << 20)
                got = re.findall(rb"\r\nSet-Cookie: __cfwaitingroom=([^;]+);", seen)
            found += got
    return found


def write_heads(path: Path, kinds: list[bytes], carried: list[bytes], first: bytes = LINE) -> None:
    chance = random.Random(1)
    lines = (
        chance.choice(kinds) + (cookie_line(chance, ticket) if ticket else b"")
        for ticket in carried
    )
    path.write_bytes(b"\1".join(first + line + b"\r\n" for line in lines))


def measure(
    client: Client, contestants: dict[str, Contestant], folder: Path, rounds: int, seconds: int
) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (port, pid, heads, _, (kinds, waiters)) in contestants.items():
            if waiters:
                write_heads(folder / heads, kinds, tickets(port, waiters))
                time.sleep(DUE_S)
                client.load(port, WARM_S, folder / heads)
            before = cpu_us(pid)
            answered = client.load(port, seconds, folder / heads).answered
            took[name].append((cpu_us(pid) - before) / answered)
    return took


def greenroom(
    stack: contextlib.ExitStack, folder: Path, command: str, port: int, label: str, waiters: int
) -> dict[str, Contestant]:
    """Two processes, one with room for everybody and one with a line, and what they are asked. They
    listen on `port` and the next one.
    """
    inside, closed, made = port, port + 1, {}
    for number, limit, session in ((inside, 100_000, 30), (closed, LIMIT, 1)):
        text = GREENROOM_CONF.format(
            origin=ORIGIN, port=number, control=number + 100, data=folder / str(number), limit=limit
        )
        (folder / f"{number}.toml").write_text(
            text.replace("session_duration = 30", f"session_duration = {session}")
        )
        made[number] = stack.enter_context(
            running([command, "serve", "--config", str(folder / f"{number}.toml")], number, 0)
        ).pid
    waiting = tickets(closed, waiters + LIMIT)[LIMIT:]
    asked: dict[str, tuple[list[bytes], list[bytes]]] = {
        "updates": (browsers(), waiting),  # for the floors
        "pages": (navigating(), waiting),
        "newcomers": (navigating(), [b""] * waiters),
        "inside": (navigating(), tickets(inside, INSIDE)),
    }
    for name, (kinds, carried) in asked.items():
        write_heads(folder / f"{name}{label}", kinds, carried)

    def in_line(name: str, kinds: list[bytes], floor: str, visitors: int = waiters) -> Contestant:
        return Contestant(closed, made[closed], f"line: {name}{label}", floor, (kinds, visitors))

    return {
        f"let-in visitors{label}": Contestant(
            inside, made[inside], f"inside{label}", "floor: proxy"
        ),
        f"newcomers' page{label}": Contestant(
            closed, made[closed], f"newcomers{label}", "floor: page"
        ),
        f"page of visitors in line{label}": in_line("pages", navigating(), "floor: page"),
        f"update, different waiters{label}": in_line("updates", browsers(), "floor: JSON"),
        f"the same, published JSON{label}": in_line("published", browsers(b"1"), "floor: JSON"),
        f"update, one waiter repeated{label}": in_line(
            "one update", browsers()[:1], "floor: JSON", 1
        ),
    }


def with_table(
    client: Client, stack: contextlib.ExitStack, folder: Path, command: str, port: int, waiters: int
) -> dict[str, Contestant]:
    """A process whose waiters read the table of the line, once they are in line."""
    text = GREENROOM_CONF.format(
        origin=ORIGIN, port=port, control=port + 100, data=folder / str(port), limit=LIMIT
    )
    (folder / f"{port}.toml").write_text(
        text.replace("session_duration = 30", "session_duration = 1\nline_table = true")
    )
    pid = stack.enter_context(
        running([command, "serve", "--config", str(folder / f"{port}.toml")], port, 0)
    ).pid
    write_heads(folder / "joining", browsers(), tickets(port, waiters + LIMIT)[LIMIT:])
    write_heads(folder / "tables", browsers(), [b""] * waiters, TABLE_LINE)
    time.sleep(DUE_S)
    client.load(port, WARM_S, folder / "joining")
    return {"table of the line": Contestant(port, pid, "tables", "floor: JSON")}


def floors(stack: contextlib.ExitStack, folder: Path) -> dict[str, Contestant]:
    """nginx as a proxy, and the servers that do nothing; all are asked what our own greenroom is
    asked.
    """
    (folder / "proxy.conf").write_text(PROXY_CONF.format(dir=folder, port=NGINX, origin=ORIGIN))
    nginx = worker_of(
        stack.enter_context(running(["nginx", "-c", str(folder / "proxy.conf")], NGINX, 0))
    )
    found = {}
    for kind, port, heads in (
        ("JSON", 9105, "updates"),
        ("page", 9106, "pages"),
        ("proxy", 9107, "inside"),
    ):
        command = [
            sys.executable,
            str(Path(__file__).with_name("floors.py")),
            kind.lower(),
            str(port),
            str(ORIGIN),
        ]
        pid = stack.enter_context(running(command, port, 0)).pid
        found[f"floor: {kind}"] = Contestant(port, pid, heads, "")
    return found | {PROXY: Contestant(NGINX, nginx, "inside", "floor: proxy")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--waiters", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument(
        "--against",
        metavar="PATH",
        help="the command of another greenroom, measured in the same rounds; a minute longer",
    )
    options = parser.parse_args()
    own = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        client = stack.enter_context(Client(ORIGIN))
        contestants = floors(stack, folder) | greenroom(
            stack, folder, own, OWN, "", options.waiters
        )
        contestants |= with_table(client, stack, folder, own, OWN + TABLE, options.waiters)
        if options.against:
            contestants |= greenroom(
                stack, folder, options.against, OTHER, " (other)", options.waiters
            )
        took = {
            name: statistics.median(values)
            for name, values in measure(
                client, contestants, folder, options.rounds, options.seconds
            ).items()
        }
    print(f"{'':36} {'CPU us/request':>14} {'of its floor':>13} {'of nginx':>9}")
    for name, contestant in contestants.items():
        print(
            f"{name:36} {took[name]:14.1f} {took[name] / took[contestant.floor or name]:13.2f}"
            f" {took[name] / took[PROXY]:9.2f}"
        )


if __name__ == "__main__":
    main()
