"""The same bytes to two proxies in front of one origin: what did the origin get from each, and what
did the client get back?

The origin reads requests by the book and notes them; it answers with the bytes that a case asks
for, or says what it got. Both proxies are asked one after the other, so what the origin noted last
belongs to the proxy that was asked last.
"""

import contextlib
import socket
import time
from dataclasses import dataclass, field
from typing import BinaryIO

from origin_answers import OriginAnswer
from threaded_origin import ThreadedOrigin

from greenroom.gateway.wire.websocket import accept_of

PATIENCE_S = 30.0
UNFINISHED_S = 1.0
"""How long an answer without an end is waited for: the cases in which a proxy must not invent an
end.
"""

Pairs = list[tuple[str, str]]


def values(pairs: Pairs, name: str) -> list[str]:
    return [value for key, value in pairs if key == name]


def read_pairs(stream: BinaryIO) -> tuple[str, Pairs]:
    """The first line, and the header lines with names in lower case; a line that is malformed is a
    name that no proxy may send.
    """
    first = stream.readline(65_536)
    pairs = []
    while (line := stream.readline(65_536)) not in (b"\r\n", b""):
        name, colon, value = line.decode("latin-1").partition(":")
        good = colon and line.endswith(b"\r\n")
        pairs.append((name.lower(), value.strip()) if good else (f"malformed {line!r}", ""))
    return first.decode("latin-1").removesuffix("\r\n"), pairs


def read_chunked(stream: BinaryIO) -> tuple[bytes, bool]:
    """The payload, and whether it came to its end."""
    body = b""
    while line := stream.readline():
        size = int(line.split(b";")[0], 16)
        body += stream.read(size)
        end = stream.readline()
        if not size:
            while end not in (b"\r\n", b""):
                end = stream.readline()
            return body, bool(end)
    return body, False


@dataclass
class Reached:
    """One request as the origin read it."""

    method: str
    target: str
    version: str
    pairs: Pairs
    body: bytes


@dataclass
class OddOrigin(ThreadedOrigin):
    """Answers the case named by `X-Case` with its bytes, all others with what it got. `reached` is
    what it was asked.
    """

    answers: dict[str, OriginAnswer]
    reached: list[Reached] = field(default_factory=list)
    garbage: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.port: int = self.address[1]

    def take(self) -> list[Reached]:
        """What was asked since the last call."""
        taken, self.reached = self.reached, []
        return taken

    def unreadable(self, error: ValueError) -> None:
        self.garbage.append(str(error))

    def one(self, sock: socket.socket, stream: BinaryIO) -> bool:
        first, pairs = read_pairs(stream)
        if not first:
            return False
        self.garbage += [name for name, _ in pairs if name.startswith("malformed")]
        method, target, version = first.split(" ")
        lengths = values(pairs, "content-length")
        if values(pairs, "transfer-encoding"):
            body, _ = read_chunked(stream)
        else:
            body = stream.read(int(lengths[0])) if lengths else b""
        seen = Reached(method, target, version, pairs, body)
        self.reached.append(seen)
        case = (values(pairs, "x-case") or [""])[0]
        answer = self.answers.get(case) or echo(seen)
        sock.sendall(answer.raw)
        return not answer.closes


def echo(seen: Reached) -> OriginAnswer:
    """What an application would answer, or its consent to a WebSocket."""
    key = values(seen.pairs, "sec-websocket-key")
    if key and values(seen.pairs, "upgrade"):
        accept = accept_of(key[0].encode()).decode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        return OriginAnswer(head.encode(), closes=True)
    body = f"{seen.method} with {len(seen.body)} bytes".encode()
    head = f"HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    return OriginAnswer(head.encode() + (b"" if seen.method == "HEAD" else body))


@dataclass
class Answered:
    """What the client got. `whole`: the body ended as its framing says."""

    status: int = 0
    interim: list[int] = field(default_factory=list)
    pairs: Pairs = field(default_factory=list)
    body: bytes = b""
    whole: bool = False

    @property
    def own(self) -> bool:
        """Whether it is a page of the proxy itself, not what the origin said."""
        return b"<hr><center>nginx" in self.body or ("x-robots-tag", "noindex") in self.pairs


def ask(port: int, raw: bytes, method: str) -> Answered:
    """Sends these bytes on a connection of its own and reads one final answer."""
    got = Answered()
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock,
        sock.makefile("rb") as stream,
    ):
        with contextlib.suppress(OSError):
            sock.sendall(raw)
        sock.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError):  # no end in time: what was read is all
            while True:
                first, pairs = read_pairs(stream)
                if not first.startswith("HTTP/1."):
                    return got
                status = int(first.split(" ")[1])
                sock.settimeout(UNFINISHED_S)
                if status >= 200 or status == 101:
                    break
                got.interim.append(status)
            got.status, got.pairs = status, pairs
            _read_body(got, stream, method)
    return got


def _read_body(got: Answered, stream: BinaryIO, method: str) -> None:
    lengths = values(got.pairs, "content-length")
    if method == "HEAD" or got.status in (101, 204, 304):
        got.whole = True
    elif values(got.pairs, "transfer-encoding"):
        got.body, got.whole = read_chunked(stream)
    elif lengths:
        got.body = stream.read(int(lengths[0]))
        got.whole = len(got.body) == int(lengths[0])
    else:
        while piece := stream.read1(65_536):
            got.body += piece
        got.whole = True


@dataclass
class Passage:
    """One request through one proxy: what the origin got (nothing, if it did not arrive), and what
    came back.
    """

    reached: Reached | None
    answered: Answered


def through(origin: OddOrigin, port: int, raw: bytes, method: str) -> Passage:
    """Asks the proxy at `port`."""
    origin.take()
    answered = ask(port, raw, method)
    end = time.monotonic() + (PATIENCE_S if answered.status == 200 else 0)
    while not (reached := origin.take()) and time.monotonic() < end:
        time.sleep(0.001)  # the origin's thread notes it a moment after the proxy gave up
    return Passage(reached[-1] if reached else None, answered)


def differences(one: Passage, other: Passage) -> set[str]:
    """What differs, each as a path into a passage: `to origin: header x-real-ip`, `to client:
    status`.
    """
    if one.reached is None or other.reached is None:
        arrived = "the second" if other.reached else "the first"
        found = (
            set()
            if one.reached is other.reached
            else {f"to origin: arrives only through {arrived}"}
        )
    else:
        found = {
            f"to origin: {name}"
            for name in ("method", "target", "version", "body")
            if _differ(one.reached, other.reached, name)
        }
        found |= {
            f"to origin: header {name}"
            for name in _headers_that_differ(one.reached.pairs, other.reached.pairs)
        }
    if one.answered.own and other.answered.own and one.answered.status == other.answered.status:
        return found | {"to client: own page"}
    if one.answered.status != other.answered.status:
        return found | {
            f"to client: status {other.answered.status} instead of {one.answered.status}"
        }
    found |= {
        f"to client: {name}"
        for name in ("interim", "body", "whole")
        if _differ(one.answered, other.answered, name)
    }
    return found | {
        f"to client: header {name}"
        for name in _headers_that_differ(one.answered.pairs, other.answered.pairs)
    }


def _differ(one: object, other: object, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _headers_that_differ(one: Pairs, other: Pairs) -> set[str]:
    return {name for name, _ in one + other if values(one, name) != values(other, name)}
