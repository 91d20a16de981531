"""Polls for many waiters in turn, from a process that never sleeps: for `bench/million.py`.

    python bench/polling.py PORT SECONDS CONNECTIONS KINDS TICKETS

Each waiter carries the ticket of the answer before, as browsers do. Those who are told to come back
within SOON_S seconds do so then; all others when it is their turn among all waiters, and those who
are let in no more. KINDS has the header lines of browsers, TICKETS one ticket a line; afterwards it
has the newest tickets of those who still wait. Prints one line of JSON.
"""

import heapq
import itertools
import json
import select
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from awake import BETWEEN_HEADS, END, LOOKS, READ_BYTES, Asking

AT_ONCE = 100
"""New connections. What is sent over more than a busy server can accept in time is dropped, and
sent again up to a minute later.
"""
SOON_S = 5
REFRESH = b"\r\nRefresh: "
LENGTH, TICKET, ENTERED = (
    b"Content-Length: ",
    b"Set-Cookie: __cfwaitingroom=",
    b'"inWaitingRoom":false',
)
COOKIE = b"Cookie: theme=dark; __cfwaitingroom="


class Polling(Asking):
    """The connections of one client, and the tickets of those who wait for their next poll."""

    def __init__(
        self,
        port: int,
        kinds: list[bytes],
        tickets: list[bytes],
        poll: "select.epoll",
        connections: int,
    ) -> None:
        self.kinds = itertools.cycle(kinds)
        self.waiting = deque(tickets)
        self.soon: list[tuple[float, bytes]] = []
        """When those come back who are in front, and their tickets."""
        self.carried: dict[int, bytes] = {}
        """The ticket that was sent, until the answer is there."""
        self.entered: list[float] = []
        """When each of those who were let in was told, in Unix time."""
        self.strange = 0
        self.unopened = max(0, connections - AT_ONCE)
        super().__init__(port, [b""], poll, None, min(AT_ONCE, connections))

    def ask(self, number: int) -> None:
        """The next waiter's poll, over this connection; it rests when nobody waits."""
        now = time.perf_counter()
        ticket = (
            heapq.heappop(self.soon)[1]
            if self.soon and self.soon[0][0] <= now
            else self.waiting.popleft()
            if self.waiting
            else b""
        )
        if ticket:
            self.carried[number] = ticket
            self.asked[number] = now
            self.sockets[number].send(next(self.kinds) + COOKIE + ticket + END)

    def readable(self, number: int) -> None:
        """An answer, or a part of it."""
        try:
            data = self.sockets[number].recv(READ_BYTES)
        except ConnectionResetError:
            data = b""
        ticket = self.carried.pop(number, b"")
        if not data:
            self.partly.pop(number, None)
            self.failed += bool(ticket)
            self.waiting.extend([ticket] * bool(ticket))
            self.fresh.discard(number)
            self.ended(number)
            return
        if number in self.partly:
            data = self.partly.pop(number)[1] + data
        end, length = data.find(END), data.find(LENGTH)
        if end < 0 or len(data) < end + len(END) + int(
            data[length + len(LENGTH) : data.find(b"\r", length)]
        ):
            self.partly[number], self.carried[number] = (0, data), ticket
            return
        self.took.append(time.perf_counter() - self.asked[number])
        self.answered += 1
        self.keep(data)
        self.ask(number)
        if self.unopened and number in self.fresh:
            self.fresh.discard(number)
            self.unopened -= 1
            self.ask(self.connect())

    def keep(self, answer: bytes) -> None:
        """The new ticket, or that the waiter was let in."""
        start = answer.find(TICKET) + len(TICKET)
        if ENTERED in answer:
            self.entered.append(time.time())
        elif answer[9:12] == b"200" and start >= len(TICKET):
            ticket, refresh = answer[start : answer.find(b";", start)], answer.find(REFRESH)
            seconds = (
                int(answer[refresh + len(REFRESH) : answer.find(b"\r", refresh + 2)])
                if refresh >= 0
                else SOON_S + 1
            )
            if seconds > SOON_S:
                self.waiting.append(ticket)
            else:
                heapq.heappush(self.soon, (time.perf_counter() + seconds, ticket))
        else:
            self.strange += 1

    def run(self, seconds: float) -> dict[str, Any]:
        """Polls for so long; what was found, times in milliseconds."""
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            for _ in range(LOOKS):
                for number, _ in self.poll.poll(0):
                    self.readable(number)
        lasted = time.perf_counter() - began
        took = sorted(self.took) or [0.0]
        times = {
            "p50": took[len(took) // 2] * 1e3,
            "p99": took[len(took) * 99 // 100] * 1e3,
            "max": took[-1] * 1e3,
        }
        return {
            "requests": self.answered, "seconds": lasted, **times, "lost": self.failed, "strange": self.strange, "entered": self.entered
        }  # fmt: skip


def main() -> None:
    port, seconds, connections, kinds, path = sys.argv[1:]
    tickets = Path(path)
    heads = Path(kinds).read_bytes().split(BETWEEN_HEADS)
    polling = Polling(
        int(port), heads, tickets.read_bytes().split(), select.epoll(), int(connections)
    )
    found = polling.run(float(seconds))
    tickets.write_bytes(
        b"".join(
            ticket + b"\n"
            for ticket in (
                *polling.waiting,
                *(ticket for _, ticket in polling.soon),
                *polling.carried.values(),
            )
        )
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
