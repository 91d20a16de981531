"""HAProxy's side of a SPOE connection, without sockets: what it sends, and what it reads from the
answers.
"""

import asyncio
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any

from greenroom.proxies.service import ProxyQuestions
from greenroom.proxies.spoe import frames
from greenroom.proxies.spoe.connection import SpoeAgent, SpoeConnection
from greenroom.proxies.spoe.frames import (
    SpoeFrame,
    frame_bytes,
    pairs,
    pairs_bytes,
    string,
    string_bytes,
    value,
)
from greenroom.proxies.spoe.questions import SpoeQuestions

HELLO = {
    b"supported-versions": b"2.0",
    b"max-frame-size": 16_380,
    b"capabilities": b"pipelining,async",
}


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 40_000), "sockname": ("10.0.0.9", 8082)})
        self.sent, self.closed, self.paused = b"", False, False
        self.writes = 0

    def write(self, data: Any) -> None:
        assert not self.closed
        self.sent += data
        self.writes += 1

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


def arguments(
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    client: str = "192.0.2.1",
    first: bytes = b"target",
) -> bytes:
    """Those of the message in examples/haproxy-spoe/spoe.cfg, or with another one in front."""
    address = ip_address(client)
    packed = (
        b"".join([string_bytes(name.lower()) + string_bytes(text) for name, text in headers])
        + b"\0\0"
    )
    values = {
        b"method": b"\x08" + string_bytes(method.encode("latin-1")),
        b"target": b"\x08" + string_bytes(target),
        b"headers": b"\x09" + string_bytes(packed),
        b"address": (b"\x06" if address.version == 4 else b"\x07") + address.packed,
        b"tls": b"\x01",
    }
    order = sorted(values, key=lambda name: name != first)
    return b"\x05" + b"".join([string_bytes(name) + values[name] for name in order])


class HAProxy:
    """One connection. `connection` must be made inside a loop, so there is one for that moment."""

    def __init__(
        self, questions: ProxyQuestions, on_error: Callable[[BaseException], None], peer: str
    ) -> None:
        self.agent = SpoeAgent(SpoeQuestions(questions, on_error))
        self.wire = Wire(peer)
        self.connection: SpoeConnection = self.agent.connection()

        async def begin() -> None:
            self.connection.connection_made(self.wire)

        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(begin())

    def feed(self, data: bytes) -> None:
        if not self.wire.closed:
            self.connection.data_received(data)

    def hello(self, **changed: Any) -> dict[bytes, Any]:
        """Says HELLO; what the agent said."""
        said = {
            name: changed.get(name.decode().replace("-", "_"), what) for name, what in HELLO.items()
        }
        self.feed(
            frame_bytes(
                frames.HAPROXY_HELLO,
                0,
                0,
                pairs_bytes({name: what for name, what in said.items() if what is not None}),
            )
        )
        (frame,) = self.frames()
        return {b"kind": frame.kind, **pairs(frame.data, frame.at)}

    def notify(self, stream: int, frame: int, told: bytes, name: bytes = b"decide") -> None:
        self.feed(notify_bytes(stream, frame, told, name))

    def frames(self) -> list[SpoeFrame]:
        """Everything that was sent since the last time."""
        data, found = self.wire.sent, []
        self.wire.sent = b""
        while data:
            length = int.from_bytes(data[:4], "big")
            assert len(data) >= 4 + length
            found.append(SpoeFrame(data[4 : 4 + length]))
            data = data[4 + length :]
        return found

    def answers(self) -> list[tuple[int, int, dict[bytes, bytes]]]:
        """Stream, frame and variables of each answer."""
        found = []
        for frame in self.frames():
            assert frame.kind == frames.ACK, frame.data
            found.append((frame.stream_id, frame.frame_id, variables(frame)))
        return found

    def told_to_go(self) -> int:
        """The reason with which the agent disconnected."""
        (frame,) = self.frames()
        assert frame.kind == frames.AGENT_DISCONNECT
        assert self.wire.closed
        status = pairs(frame.data, frame.at)[b"status-code"]
        assert isinstance(status, int)
        return status


def notify_bytes(stream: int, frame: int, told: bytes, name: bytes = b"decide") -> bytes:
    """A question."""
    return frame_bytes(frames.NOTIFY, stream, frame, string_bytes(name) + told)


def variables(frame: SpoeFrame) -> dict[bytes, bytes]:
    """What an answer sets."""
    data, at = frame.data, frame.at
    found: dict[bytes, bytes] = {}
    while at < len(data):
        assert data[at : at + 3] == b"\x01\x03\x02", "set a variable of the transaction"
        name, at = string(data, at + 3)
        told, at = value(data, at)
        assert isinstance(told, bytes)
        assert name not in found
        found[name] = told
    return found
