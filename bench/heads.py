"""What reading a head costs, of a request or of an answer: our own reader, llhttp (httptools) bare,
llhttp with our checks on top.

    python bench/heads.py [--rounds 25]
    python bench/heads.py --laws      # the tests about reading and smuggling, with llhttp inside
    the reader

CPU time in this process for Chrome's fifteen lines; medians of rounds that alternate between the
contestants. A new head has a cookie that no other request had. A "line of its own" is one more
(X-Request-ID) whose value never comes again, so that no cache helps. Bare llhttp is no
alternative, because it checks too little; it is here as the floor.
"""

import argparse
import itertools
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httptools
from browser_heads import update_heads

from greenroom.gateway.wire import header_lines, request_head
from greenroom.gateway.wire.answer_head import read_answer_head
from greenroom.gateway.wire.head_records import HeaderLines, RequestHead
from greenroom.gateway.wire.request_head import Peer
from greenroom.gateway.wire.request_line import cached_line
from greenroom.request.arrival import TOO_LARGE, TOO_LONG, TOO_MANY, header_name
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy

HEADS = 1_000
LAWS = [
    "tests/properties/test_request_head_laws.py", "tests/properties/test_request_confusion.py", "tests/unit/test_head_reading.py",
    "tests/unit/test_head_for_the_origin.py", "tests/unit/test_forwarded_visitor.py", "tests/integration/test_attack_smuggling.py",
    "tests/integration/test_attack_paths.py", "tests/integration/test_attack_cookies.py", "tests/integration/test_attack_origins_agree.py",
    "tests/integration/test_gateway_requests.py", "tests/integration/test_gateway_limits.py", "tests/integration/test_gateway_framings.py",
    "tests/integration/test_gateway_pace.py", "tests/unit/test_cached_head_lines.py",
]  # fmt: skip
Read = Callable[[bytes, Peer], object]


class Collected:
    """Gathers what llhttp calls back with."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))


def bare(block: bytes, _peer: Peer) -> object:
    collected = Collected()
    httptools.HttpRequestParser(collected).feed_data(block)
    return collected.headers


class Stripped(Collected):
    """The same in the form of our own reader: names in lower case, values without blanks around
    them.
    """

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((header_lines._KNOWN.get(name) or header_name(name), value.strip()))


def with_llhttp(block: bytes, peer: Peer) -> RequestHead | Refusal:
    """A reader in which llhttp finds the header lines, and our own checks do the rest."""
    end, limits = block.find(b"\r\n"), peer.limits
    if len(block) > limits.head_bytes or end > limits.url_bytes:
        return TOO_LARGE if len(block) > limits.head_bytes else TOO_LONG
    line = cached_line(block[:end])
    if isinstance(line, Refusal):
        return line
    lines = lines_by_llhttp(block, block[end:])
    if isinstance(lines, Refusal):
        return lines
    if lines.frame.count > limits.header_lines:
        return TOO_MANY
    return request_head._understood(line, block[end:], lines, peer)


def lines_by_llhttp(block: bytes, raw: bytes) -> HeaderLines | Refusal:
    if len(raw) - len(raw.translate(None, header_lines._CONTROLS)) != 2 * (
        count := raw.count(b"\r\n")
    ):
        return Refusal(400, "the head contains a control character")
    collected = Stripped()
    try:
        httptools.HttpRequestParser(collected).feed_data(block)
    except httptools.HttpParserUpgrade:
        pass  # what follows the head is not HTTP for llhttp; here the origin decides that
    except httptools.HttpParserError as error:
        return Refusal(400, str(error))
    return header_lines._checked(tuple(collected.headers), count - 2)


ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 22 Nov 2026 08:00:00 GMT\r\nContent-Type:"
    b" text/html; charset=utf-8\r\nContent-Length: %d\r\nConnection: keep-alive\r\nVary:"
    b" Accept-Encoding\r\nCache-Control: no-cache\r\nX-Frame-Options: DENY\r\n\r\n"
)


def answer_heads() -> Iterator[bytes]:
    """Answers of an application: eight headers, each time another length."""
    return (ANSWER % length for length in itertools.count(100))


def answer_bare(block: bytes, _peer: Peer) -> object:
    collected = Collected()
    httptools.HttpResponseParser(collected).feed_data(block)
    return collected.headers


def microseconds(read: Read, heads: list[bytes], peer: Peer) -> float:
    begun = time.process_time()
    for head in heads:
        read(head, peer)
    return (time.process_time() - begun) / len(heads) * 1e6


def compare(rounds: int) -> dict[str, float]:
    chance = random.Random(1)
    own: Read = request_head.read_head
    new, alone = update_heads(chance), update_heads(chance, b"X-Request-ID: %d\r\n")
    again: Iterator[bytes] = itertools.repeat(next(new))
    contestants: dict[str, tuple[Read, Iterator[bytes]]] = {
        "own reader, new head": (own, new),
        "own reader, new head with a line of its own": (own, alone),
        "own reader, head repeated on its connection": (own, again),
        "llhttp bare, new head": (bare, new),
        "llhttp with our checks, new head with a line of its own": (with_llhttp, alone),
    }
    answers: dict[str, tuple[Read, Iterator[bytes]]] = {
        "own reader, an answer's head": (lambda block, _: read_answer_head(block), answer_heads()),
        "own reader, an answer's head that came before": (
            lambda block, _: read_answer_head(block),
            itertools.repeat(ANSWER % 9),
        ),
        "llhttp bare, an answer's head": (answer_bare, answer_heads()),
    }
    contestants |= answers
    peer = Peer("203.0.113.5", False, ForwardedPolicy())
    took: dict[str, list[float]] = {name: [] for name in contestants}
    for head in itertools.islice(new, 8 * HEADS):  # browsers are known by then
        own(head, peer)
    for _ in range(rounds):
        for name, (read, heads) in contestants.items():
            took[name].append(microseconds(read, list(itertools.islice(heads, HEADS)), peer))
    return {name: statistics.median(values) for name, values in took.items()}


def laws() -> int:
    """The tests with `with_llhttp` as the reader; the exit status of pytest."""
    here = Path(__file__).resolve()
    environment = os.environ | {"PYTHONPATH": str(here.parent)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", here.stem, *LAWS]
    return subprocess.run(command, cwd=here.parents[1], env=environment, check=False).returncode


def pytest_configure() -> None:
    """As a plug-in of pytest, for `--laws`."""
    request_head.read_head = with_llhttp


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--laws", action="store_true")
    options = parser.parse_args()
    if options.laws:
        sys.exit(laws())
    figures = compare(options.rounds)
    for name, value in figures.items():
        floor = figures[
            "llhttp bare, an answer's head" if "answer" in name else "llhttp bare, new head"
        ]
        print(f"{name:56} {value:6.2f} us  {value / floor:5.2f} of bare llhttp")


if __name__ == "__main__":
    main()
