"""What the in-memory ledger costs: microseconds per operation, bytes per visitor, time to restart.

Run it by itself: `python tests/bench/bench_ledger.py`. It prints a table; it asserts nothing.
"""

import gc
import random
import time
import tracemalloc

from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.room import Room
from greenroom.model.visit import make_key

CROWD = 50_000
RESTARTED = 100_000


class Hand:
    """A clock set by hand."""

    def __init__(self, ms: int = 1_750_000_000_000) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms


class Pages:
    """A journal in memory."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def append(self, records: bytes) -> None:
        self.payloads.append(records)


def room(**changes: object) -> Room:
    return Room(
        **{
            "id": "r",
            "name": "r",
            "host": "*",
            "total_active_users": 500,
            "new_users_per_minute": 600,
            **changes,
        }
    )  # type: ignore[arg-type]


def ident(number: int) -> bytes:
    return number.to_bytes(12, "big")


def ignore(_: object) -> None:
    pass


def filled(method: str, waiting: int) -> tuple[MemoryLedger, Hand, list[int]]:
    clock, draw = Hand(), random.Random(1)
    ledger = MemoryLedger(room(queueing_method=method), clock, draw.getrandbits, Pages())
    for number in range(500):
        ledger.arrive(ident(number), make_key(clock.ms, number), ignore)
    keys = sorted(
        make_key(clock.ms + draw.randrange(60_000), draw.getrandbits(22)) for _ in range(waiting)
    )
    clock.ms += 60_000
    for number, key in enumerate(keys):
        ledger.poll(ident(1000 + number), key, ignore)
    return ledger, clock, keys


def timed(what: str, calls: int, work: object) -> None:
    best = min(_once(work) for _ in range(5))  # the machine may be busy with something else
    print(f"{what:<58}{best / calls * 1e6:8.2f} us")


def _once(work: object) -> float:
    gc.collect()
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began


def operations(method: str) -> None:
    ledger, clock, keys = filled(method, CROWD)
    order = random.Random(2).sample(range(CROWD), 20_000)
    known = [(ident(1000 + number), keys[number]) for number in order]

    def poll() -> None:
        for ticket_id, key in known:
            clock.ms += 1
            ledger.poll(ticket_id, key, ignore)

    def peek() -> None:
        for ticket_id, key in known:
            ledger.peek(ticket_id, key, ignore)

    def arrive() -> None:
        for ticket_id, key in known:
            ledger.arrive(b"x" + ticket_id[1:], key, ignore)

    inside = [ident(number) for number in range(500)] * 40

    def view() -> None:
        for ticket_id in inside:
            ledger.view(ticket_id, ignore)

    timed(f"{method}: view, no renewal", len(inside), view)
    timed(f"{method}: arrive without a cookie while {CROWD} wait", len(known), arrive)
    timed(f"{method}: peek with {CROWD} waiting", len(known), peek)
    timed(f"{method}: poll with {CROWD} waiting, 1 ms apart", len(known), poll)
    timed(f"{method}: tick", 1, ledger.tick)


def renewals() -> None:
    ledger, clock, _ = filled("fifo", 0)

    def renew() -> None:
        for _ in range(20):
            clock.ms += 5_001
            for number in range(500):
                ledger.view(ident(number), ignore)

    timed("view with renewal, journal in memory", 10_000, renew)


def memory() -> None:
    draw = random.Random(3)
    for what, inside, waiting in (("active visitor", CROWD, 0), ("waiter", 0, CROWD)):
        clock = Hand()
        tracemalloc.start()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        ledger = MemoryLedger(
            room(total_active_users=max(1, inside), new_users_per_minute=10**6),
            clock,
            draw.getrandbits,
        )
        for _ in range(inside or 1):
            clock.ms += draw.randrange(3)
            ledger.arrive(draw.randbytes(12), make_key(clock.ms, draw.getrandbits(22)), ignore)
        clock.ms += 61_000
        for _ in range(waiting):
            clock.ms += draw.randrange(2)
            ledger.poll(draw.randbytes(12), make_key(clock.ms - 2000, draw.getrandbits(22)), ignore)
        ledger.tick()
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        print(f"bytes per {what:<48}{used / max(inside, waiting):8.0f} B")


def restart() -> None:
    draw, clock = random.Random(4), Hand()
    pages = Pages()
    limits = {"total_active_users": RESTARTED // 2, "new_users_per_minute": 10**6}
    ledger = MemoryLedger(room(**limits), clock, draw.getrandbits, pages)
    for _ in range(RESTARTED):
        ticket_id, key = draw.randbytes(12), make_key(clock.ms, draw.getrandbits(22))
        ledger.poll(ticket_id, key, ignore)
    for name, payloads in (
        ("its journal", pages.payloads),
        ("a snapshot", list(ledger.snapshot())),
    ):
        gc.collect()
        began = time.perf_counter()
        MemoryLedger.restore(room(**limits), clock, draw.getrandbits, None, payloads)
        passed = time.perf_counter() - began
        print(f"restart with {RESTARTED} visitors from {name:<24}{passed * 1000:8.0f} ms")
    began = time.perf_counter()
    payloads = ledger.snapshot()
    print(
        f"taking a snapshot of them, on the event loop{'':<14}{(time.perf_counter() - began) * 1000:8.0f} ms"
    )
    sum(map(len, payloads))
    print(f"  and packing it{'':<42}{(time.perf_counter() - began) * 1000:8.0f} ms")


if __name__ == "__main__":
    operations("fifo")
    operations("random")
    renewals()
    memory()
    restart()
