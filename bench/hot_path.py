"""CPU time of our own code for each kind of request, without a kernel: what is left to make faster.

    python bench/hot_path.py [--rounds 9] [--requests 4000] [--profile ROW] [--steps]

The whole gateway with its observers runs in this process, between transports that only keep what is
written. Kernel, event loop and cold caches add 9 to 10 us a request (`bench/updates.py` measures
real processes). A round asks every kind of request in turn, so a slow moment of the machine touches
all of them; the least and the median of the rounds are printed. `--profile` prints where one kind
spends its time; `--steps` prints how many steps of the interpreter and calls of our functions each
kind takes, which no busy machine changes.
"""

import argparse
import cProfile
import os
import pstats
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvloop
from browser_heads import HOST, LINE, browsers, cookie_line, navigating

from greenroom.analytics.collector.decisions import recording
from greenroom.analytics.recorder import Recorder
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.lost_tickets import LostTickets
from greenroom.decision.observer import observed_by
from greenroom.decision.room_schedule import compile_room
from greenroom.decision.room_table import RoomTable
from greenroom.decision.service import DecisionService
from greenroom.decision.tickets import Sealer
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.origin.pool import OriginConnection
from greenroom.gateway.server import Gateway
from greenroom.keys.ticket_keys import KeyRing
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.room import Room
from greenroom.runtime.entropy import Entropy
from greenroom.settings.limits import Limits

CONNECTIONS = 64
INSIDE = 2_000
"""Let-in visitors."""

DUE_MS, TICK_MS = 2_600, 400
"""After this every new ticket is due for a try, and so often a room in a process syncs."""

REQUEST_US = 30
"""How far the rooms' clock goes on with each request: a busy gateway's pace, however busy this
machine is.
"""

STEPPED = 200
"""Requests whose steps are counted."""

ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n\r\n"
    + b"x" * 1024
)


class Stepping:
    """The rooms' clock: it goes on with what is asked, so no ticket is late because the machine is
    busy.
    """

    def __init__(self) -> None:
        self.us = time.time_ns() // 1_000

    def now_ms(self) -> int:
        return self.us // 1_000


class Kept:
    """A transport that keeps what is written last."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written = data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing to close."""

    abort = close

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing to limit."""

    def get_extra_info(self, name: str) -> object:
        return {"peername": ("127.0.0.1", 40_000), "sockname": ("127.0.0.1", 80)}.get(name)


def rooms(folder: Path, limit: int, clock: Stepping) -> tuple[MemoryLedger, Gateway]:
    """A gateway in front of one room, and its ledger."""
    take = Entropy()
    room = Room(
        id="room",
        name="bench",
        host=HOST.decode(),
        total_active_users=limit,
        new_users_per_minute=limit,
        session_duration=30,
        move_places=False,
    )
    ledger = MemoryLedger(room, clock, take.bits, None)
    compiled = compile_room(
        room,
        (),
        clock.now_ms(),
        ledger,
        always_use_https=False,
        draws=DrawFiles(folder),
        on_error=print,
    )
    counting = recording(Recorder("bench", "here", clock.now_ms()), DecisionCounts())
    observe = observed_by([LostTickets(lambda *_: None).behind(counting)], print)
    service = DecisionService(
        RoomTable([compiled]),
        Sealer(KeyRing(folder / "keys.json", clock.now_ms()), take.take),
        clock,
        take.take,
        print,
        observe,
    )
    origin = Origin.of("http://127.0.0.1:9")
    limits = Limits(
        requests_per_connection=1_000_000_000, origin_idle_s=1_000_000, connections_per_address=0
    )
    return ledger, Gateway(service, lambda _: origin, limits=limits, on_error=print)


def asker(
    gateway: Gateway, clock: Stepping, connections: int = CONNECTIONS
) -> Callable[[list[bytes]], list[bytes]]:
    """Sends requests, one over each connection in each turn of the loop, and gives what was
    written; an origin answers at once.
    """
    pool = gateway.state.pool_for("x")
    assert pool is not None
    visitors: list[tuple[Callable[[bytes], None], Kept]] = []
    for _ in range(connections):
        kept, connection = Kept(), gateway.connection()
        connection.connection_made(kept)  # type: ignore[arg-type]
        visitors.append((connection.data_received, kept))
        origin = OriginConnection(pool)
        wire = Kept()
        wire.write = lambda data, origin=origin: origin.data_received(ANSWER)  # type: ignore[assignment]  # noqa: ARG005
        origin.connection_made(wire)  # type: ignore[arg-type]
        pool.give_back(origin, 0)

    def ask(sent: list[bytes]) -> list[bytes]:
        answers: list[bytes] = []
        for at in range(0, len(sent), connections):
            turn = sent[at : at + connections]
            for (receive, _), head in zip(visitors, turn, strict=False):
                clock.us += REQUEST_US
                receive(head)
            gateway.batch.decide()
            answers += [kept.written for _, kept in visitors[: len(turn)]]
        return answers

    return ask


def ticket(answer: bytes) -> bytes:
    """The ticket of an answer."""
    return answer.partition(b"__cfwaitingroom=")[2].partition(b";")[0]


def heads(kinds: list[bytes], tickets: list[bytes]) -> list[bytes]:
    """One request for each ticket (empty: none), each from a browser of some kind."""
    chance = random.Random(1)
    return [
        LINE + chance.choice(kinds) + (cookie_line(chance, one) if one else b"") + b"\r\n"
        for one in tickets
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--profile", metavar="ROW")
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    uvloop.run(measure(options.rounds, options.requests, options.profile, options.steps))


def steps_of(ask: Callable[[list[bytes]], object], sent: list[bytes]) -> tuple[float, float]:
    """Steps of the interpreter and calls of functions in Python for one of these requests, on the
    mean.
    """
    counted = Counter[str]()

    def trace(frame: FrameType, event: str, _: object) -> object:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        counted[event] += 1
        return trace

    sys.settrace(trace)
    ask(sent)
    sys.settrace(None)
    return counted["opcode"] / len(sent), counted["call"] / len(sent)


async def measure(rounds: int, requests: int, profiled: str | None, steps: bool) -> None:
    """All kinds of request, round by round."""
    with tempfile.TemporaryDirectory() as name:
        folder, clock = Path(name), Stepping()
        (folder / "full").mkdir()
        _, inside = rooms(folder, 100_000, clock)
        ledger, full = rooms(folder / "full", 1, clock)
        ask_inside, ask_full = asker(inside, clock), asker(full, clock)
        page = navigating()
        ask_full([LINE + page[0] + b"\r\n"])  # the only one who is let in
        admitted = heads(
            page, [ticket(answer) for answer in ask_inside(heads(page, [b""] * INSIDE))]
        )

        def in_line(kinds: list[bytes]) -> list[bytes]:
            """Requests of visitors who are in line, with tickets that are due."""
            tickets = [ticket(answer) for answer in ask_full(heads(page, [b""] * requests))]
            for _ in range(0, DUE_MS, TICK_MS):
                clock.us += TICK_MS * 1_000
                ledger.tick()
            sent = heads(kinds, tickets)
            ask_full(sent)  # takes the place
            return sent

        rows: dict[str, tuple[Callable[[list[bytes]], object], Callable[[], list[bytes]]]] = {
            "let in": (ask_inside, lambda: admitted),
            "let in, one visitor": (ask_inside, lambda: admitted[:1]),
            "newcomer's page": (ask_full, lambda: heads(page, [b""] * requests)),
            "newcomer's page, one browser": (ask_full, lambda: heads(page[:1], [b""])),
            "page in line": (ask_full, lambda: in_line(page)),
            "page in line, one waiter": (ask_full, lambda: in_line(page)[:1]),
            "update": (ask_full, lambda: in_line(browsers())),
            "update, one waiter": (ask_full, lambda: in_line(browsers())[:1]),
        }
        took: dict[str, list[float]] = {row: [] for row in rows}
        profile = cProfile.Profile()
        if steps:
            rounds = 1
        for number in range(rounds + 1):
            for row, (ask, asked) in rows.items():
                sent = asked()
                batch = [sent[at % len(sent)] for at in range(requests)]
                if row == profiled:
                    profile.enable()
                began = time.process_time_ns()
                ask(batch)
                spent = time.process_time_ns() - began
                profile.disable()
                if number:
                    took[row].append(spent / requests / 1_000)
        if steps:
            print(f"{'a request':30} {'steps':>7} {'calls':>7}")
            for row, (ask, asked) in rows.items():
                sent = asked()
                per_request = steps_of(ask, (sent * STEPPED)[:STEPPED])
                print(f"{row:30} {per_request[0]:7.0f} {per_request[1]:7.1f}")
            return
        print(f"{'us of CPU a request':30} {'least':>7} {'median':>7}")
        for row, figures in took.items():
            print(f"{row:30} {min(figures):7.2f} {statistics.median(figures):7.2f}")
        if profiled:
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        inside.close()
        full.close()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
