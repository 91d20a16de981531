"""CPU time of one decision with its ticket, in this process: everything between a read request head
and a reply.

    python bench/decision.py

Prints the median of repeated rounds in microseconds: the head, the decision (room, cookie, ticket
opened, ledger asked, ticket sealed, Set-Cookie written), the head for the origin, and the waiting
page.
"""

import os
import random
import statistics
import time
from collections.abc import Callable

from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.observer import observed_by
from greenroom.decision.render import render
from greenroom.decision.room_schedule import compile_room
from greenroom.decision.room_table import RoomTable
from greenroom.decision.service import DecisionService
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.keys.ticket_keys import KeyRing
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.answer import Answer
from greenroom.model.room import Room
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.runtime.clock import MonotonicClock

HEAD = (
    b"GET /shop/item/42?colour=red HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: Mozilla/5.0"
    b" (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0"
    b" Safari/537.36\r\nAccept:"
    b" text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\nAccept-Language:"
    b" en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nConnection:"
    b" keep-alive\r\nUpgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode:"
    b" navigate\r\nSec-Fetch-Site: none\r\nSec-Fetch-User: ?1\r\n%b\r\n"
)


def microseconds(work: Callable[[], object], times: int = 5_000, rounds: int = 15) -> float:
    for _ in range(times):
        work()
    found = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - start) / times * 1e6)
    return statistics.median(found)


def main() -> None:
    import tempfile
    from pathlib import Path

    clock = MonotonicClock()
    peer = Peer("127.0.0.1", False, ForwardedPolicy([]))
    replies: list[Verdict] = []
    counts = DecisionCounts()

    with tempfile.TemporaryDirectory() as folder:
        ring = KeyRing(Path(folder) / "keys.json", clock.now_ms())

        def service(limit: int) -> DecisionService:
            room = Room(
                id="room",
                name="bench",
                host="shop.example.com",
                total_active_users=limit,
                new_users_per_minute=limit,
                session_duration=30,
                move_places=False,
            )
            ledger = MemoryLedger(room, clock, random.Random(1).getrandbits, None)
            table = RoomTable(
                [
                    compile_room(
                        room,
                        (),
                        clock.now_ms(),
                        ledger,
                        always_use_https=False,
                        draws=DrawFiles(Path(folder)),
                        on_error=print,
                    )
                ]
            )
            return DecisionService(
                table, Sealer(ring), clock, os.urandom, print, observed_by([counts.observe], print)
            )

        def head(cookie: bytes = b"") -> RequestHead:
            read = read_head(
                HEAD % (b"Cookie: theme=dark; " + cookie + b"\r\n" if cookie else b""), peer
            )
            assert isinstance(read, RequestHead)
            return read

        def asked(decisions: DecisionService, request: RequestHead) -> Forward | Answer:
            replies.clear()
            decisions.receive(request.arrival, replies.append)
            return (
                render(replies[0], request.arrival) if isinstance(replies[0], Hold) else replies[0]
            )

        inside, full = service(1000), service(1)
        admitted = asked(inside, head())
        assert isinstance(admitted, Forward)
        accepted = head(admitted.set_cookie.partition(b";")[0])
        asked(full, head())
        held = asked(full, head())
        assert isinstance(held, Answer)
        waiting = head(held.set_cookie.partition(b";")[0])
        raw = HEAD % (b"Cookie: theme=dark; " + admitted.set_cookie.partition(b";")[0] + b"\r\n")
        rows = {
            "read the head": lambda: read_head(raw, peer),
            "decision + ticket, valid session": lambda: asked(inside, accepted),
            "head for the origin": lambda: outgoing_head(accepted, peer, b"", inside.own_cookies),
            "waiting page, newcomer": lambda: asked(full, newcomer),
            "waiting page, a visitor in line": lambda: asked(full, waiting),
        }
        newcomer = head()
        for name, work in rows.items():
            print(f"{name:36} {microseconds(work):6.2f} us")


if __name__ == "__main__":
    main()
