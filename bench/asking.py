"""CPU time of our own code for each way in which a proxy or an application asks, without a kernel.

    python bench/asking.py [--rounds 9] [--requests 4000] [--profile ROW] [--steps]

As `bench/hot_path.py`, with the listener of `greenroom decide` instead of the gateway: nginx's
auth_request over 64 connections, HAProxy's SPOE over one (32 questions in one read), the ASGI
middleware. "One visitor" repeats one request, as the client of `bench/proxies.py` does; the other
rows have 2,000 visitors, each with a ticket, an address and a page of their own and one of 384
kinds of Chrome. `--steps` counts steps of the interpreter and calls of our functions instead, which
no busy machine changes.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine
from ipaddress import ip_network
from pathlib import Path
from typing import Any, cast

from browser_heads import HOST, cookie_line, navigating
from hot_path import (
    CONNECTIONS,
    INSIDE,
    REQUEST_US,
    STEPPED,
    Kept,
    Stepping,
    asker,
    heads,
    rooms,
    steps_of,
    ticket,
)

from greenroom.asgi import WaitingRoom
from greenroom.decision.service import DecisionService
from greenroom.gateway.server import Gateway
from greenroom.gateway.wire.header_lines import IN_QUESTIONS
from greenroom.gateway.wire.question_heads import QuestionHeads
from greenroom.proxies.service import ProxyQuestions, VerdictStore
from greenroom.proxies.spoe.connection import SpoeAgent
from greenroom.proxies.spoe.frames import (
    HAPROXY_HELLO,
    NOTIFY,
    frame_bytes,
    pairs_bytes,
    string_bytes,
)
from greenroom.proxies.spoe.questions import SpoeQuestions
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.runtime.embedded import AppRequests
from greenroom.runtime.entropy import Entropy
from greenroom.settings.limits import Limits

AT_ONCE = 32
"""Questions that HAProxy sends in one write when it is busy."""

Asked = tuple[bytes, bytes, list[tuple[bytes, bytes]]]
"""Address, target and headers of one visitor's request."""


def visitors(tickets: list[bytes]) -> list[Asked]:
    """One request for each ticket."""
    chance, kinds, found = random.Random(1), navigating(), list[Asked]()
    for number, one in enumerate(tickets):
        lines = (chance.choice(kinds) + (cookie_line(chance, one) if one else b"")).split(b"\r\n")[
            :-1
        ]
        pairs = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
        found.append((b"198.51.%d.%d" % divmod(number, 250), b"/sale/%d" % number, pairs))
    return found


def auth_request(asked: Asked) -> bytes:
    """The question as nginx writes it with examples/nginx."""
    address, target, pairs = asked
    lines = [
        b"GET /nginx/decide HTTP/1.0", b"X-Original-Method: GET", b"X-Original-URI: " + target, b"X-Original-Host: " + HOST,
        b"X-Forwarded-For: " + address, b"X-Forwarded-Proto: http", b"Host: greenroom",
    ]  # fmt: skip
    lines[0] = b"GET /nginx/decide HTTP/1.1"
    return b"\r\n".join(
        [
            *lines,
            *[b"%b: %b" % pair for pair in pairs if pair[0] not in (b"Host", b"Connection")],
            b"",
            b"",
        ]
    )


def spoe(asked: Asked, number: int) -> bytes:
    """The question as HAProxy writes it with examples/haproxy-spoe."""
    address, target, pairs = asked
    packed = (
        b"".join(
            [
                string_bytes(name.lower()) + string_bytes(value)
                for name, value in pairs
                if name != b"Connection"
            ]
        )
        + b"\0\0"
    )
    packed_address = bytes(int(part) for part in address.split(b"."))
    told = (
        (b"target", b"\x08" + string_bytes(target)), (b"method", b"\x08" + string_bytes(b"GET")),
        (b"headers", b"\x09" + string_bytes(packed)), (b"address", b"\x06" + packed_address), (b"tls", b"\x01"),
    )  # fmt: skip
    message = (
        string_bytes(b"decide")
        + bytes((len(told),))
        + b"".join([string_bytes(name) + value for name, value in told])
    )
    return frame_bytes(NOTIFY, number, 1, message)


class Asking:
    """The listener of `greenroom decide` and the ASGI middleware, in front of one decision service."""

    def __init__(self, decisions: DecisionService) -> None:
        policy = ForwardedPolicy([ip_network("127.0.0.0/8")])
        self.questions = ProxyQuestions(
            decisions, policy, VerdictStore(Entropy().take, time.monotonic), print
        )
        limits = Limits(requests_per_connection=1_000_000_000, connections_per_address=0)
        read = QuestionHeads(self.questions).read
        self.gateway = Gateway(
            self.questions,
            lambda _: None,
            limits=limits,
            on_error=print,
            varying=IN_QUESTIONS,
            read=read,
        )
        self._connections = []
        for _ in range(CONNECTIONS):
            kept, connection = Kept(), self.gateway.connection()
            connection.connection_made(kept)  # type: ignore[arg-type]
            self._connections.append((connection.data_received, kept))
        self._at = 0
        self._agent = SpoeAgent(SpoeQuestions(self.questions, print))
        self._spoe, self._kept = self._agent.connection(), Reading()
        self._spoe.connection_made(self._kept)  # type: ignore[arg-type]
        hello = {
            b"supported-versions": b"2.0",
            b"max-frame-size": 16_380,
            b"capabilities": b"pipelining",
        }
        self._spoe.data_received(frame_bytes(HAPROXY_HELLO, 0, 0, pairs_bytes(hello)))
        self._apps = AppRequests(decisions, policy, print)
        self._room = WaitingRoom(application, {"data": "none", "rooms": [{"name": "a", "host": "*", "total_active_users": 200,
                                                                     "new_users_per_minute": 200}]})  # fmt: skip
        self._room.embedded.last_requests = self._apps

    def http(self, head: bytes) -> bytes:
        """Over the next of several connections, alone in its turn of the loop."""
        self._at = (self._at + 1) % CONNECTIONS
        receive, kept = self._connections[self._at]
        receive(head)
        self.gateway.batch.decide()
        return kept.written

    def over_spoe(self, data: bytes) -> bytes:
        """Over the one connection."""
        self._spoe.data_received(data)
        return self._kept.written

    def asgi(self, scope: dict[str, Any]) -> bytes:
        """Runs the middleware until the application has answered."""
        sent: list[Any] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        one = cast(Coroutine[Any, Any, None], self._room(scope, nothing, send))
        try:
            one.send(None)
        except StopIteration:
            return b"".join([value for name, value in sent[0]["headers"] if name == b"set-cookie"])
        raise RuntimeError("the application waits")

    def close(self) -> None:
        """Ends the gateway's sweep."""
        self.gateway.close()


class Reading(Kept):
    """A transport that can be paused."""

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    resume_reading = pause_reading


async def nothing() -> dict[str, Any]:
    """No body."""
    return {"type": "http.request", "body": b"", "more_body": False}


async def application(
    _scope: dict[str, Any],
    _receive: object,
    send: Callable[[dict[str, Any]], Coroutine[Any, Any, None]],
) -> None:
    """A page of 1 KB."""
    headers = [(b"content-type", b"text/html"), (b"content-length", b"1024")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * 1024})


def scope_of(asked: Asked) -> dict[str, Any]:
    """As uvicorn makes it."""
    address, target, pairs = asked
    return {
        "type": "http", "method": "GET", "path": target.decode(), "raw_path": target, "query_string": b"", "http_version": "1.1",
        "scheme": "http", "client": (address.decode(), 40_000), "server": ("127.0.0.1", 80),
        "headers": [(name.lower(), value) for name, value in pairs],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--profile", metavar="ROW")
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    asyncio.run(
        measure(
            1 if options.steps else options.rounds, options.requests, options.profile, options.steps
        )
    )


async def measure(rounds: int, requests: int, profiled: str | None, steps: bool) -> None:
    """All ways of asking, round by round."""
    with tempfile.TemporaryDirectory() as name:
        folder, clock = Path(name), Stepping()
        (folder / "full").mkdir()
        _, inside = rooms(folder, 100_000, clock)
        admitted = visitors(
            [ticket(answer) for answer in asker(inside, clock)(heads(navigating(), [b""] * INSIDE))]
        )
        _, full = rooms(folder / "full", 1, clock)
        asker(full, clock)(heads(navigating(), [b""]))
        asking, closed = (
            Asking(cast(DecisionService, inside.receiver)),
            Asking(cast(DecisionService, full.receiver)),
        )
        newcomers = visitors([b""] * INSIDE)

        def page_over_http(heads: tuple[bytes, bytes]) -> None:
            said = closed.http(heads[0])
            closed.http(heads[1] % said.partition(b"Greenroom-Verdict: ")[2][:32])

        def page_over_spoe(data: bytes) -> None:
            for said in closed.over_spoe(data).split(b"\x04page\x08\x20")[1:]:
                closed.http(PAGE % (b"spoe", said[:32]))

        def in_one(asked: list[Asked]) -> list[bytes]:
            frames = [spoe(one, number % 4_000) for number, one in enumerate(asked)]
            return [b"".join(frames[at : at + AT_ONCE]) for at in range(0, len(frames), AT_ONCE)]

        rows: dict[str, tuple[Callable[[Any], object], list[Any], int]] = {
            "auth_request": (asking.http, [auth_request(one) for one in admitted], 1),
            "auth_request, one visitor": (asking.http, [auth_request(admitted[0])], 1),
            "auth_request, waiting page": (
                page_over_http,
                [(auth_request(one), PAGE.replace(b"%b", b"nginx", 1)) for one in newcomers],
                1,
            ),
            "SPOE": (asking.over_spoe, in_one(admitted), AT_ONCE),
            "SPOE, one visitor": (asking.over_spoe, in_one(admitted[:1] * AT_ONCE), AT_ONCE),
            "SPOE, waiting page": (page_over_spoe, in_one(newcomers), AT_ONCE),
            "ASGI": (asking.asgi, [scope_of(one) for one in admitted], 1),
            "ASGI, one visitor": (asking.asgi, [scope_of(admitted[0])], 1),
        }
        took: dict[str, list[float]] = {row: [] for row in rows}
        profile = cProfile.Profile()
        for number in range(rounds + 1):
            for row, (ask_one, sent, together) in rows.items():
                batch = [sent[at % len(sent)] for at in range(requests // together)]
                if row == profiled and number:
                    profile.enable()
                began = time.process_time_ns()
                for one in batch:
                    clock.us += REQUEST_US * together
                    ask_one(one)
                spent = time.process_time_ns() - began
                profile.disable()
                if number:
                    took[row].append(spent / len(batch) / together / 1_000)
        if steps:
            print(f"{'a request':28} {'steps':>7} {'calls':>7}")
            for row, (ask_one, sent, together) in rows.items():
                counted = steps_of(
                    lambda all_of_them, ask_one=ask_one: [ask_one(one) for one in all_of_them],
                    (sent * STEPPED)[:STEPPED],
                )
                print(f"{row:28} {counted[0] / together:7.0f} {counted[1] / together:7.1f}")
            return
        print(f"{'us of CPU a request':28} {'least':>7} {'median':>7}")
        for row, figures in took.items():
            print(f"{row:28} {min(figures):7.2f} {statistics.median(figures):7.2f}")
        if profiled:
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        for one in (asking, closed, inside, full):
            one.close()


PAGE = (
    b"GET /%b/page HTTP/1.1\r\nGreenroom-Verdict: %b\r\nHost: greenroom\r\nAccept-Encoding:"
    b" gzip\r\n\r\n"
)

if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
