"""HAProxy's connections over SPOE. Questions are pipelined; answers name their stream and frame, so
they may overtake each other, and all of one read leave in one write. Bounds: one unfinished frame,
PENDING_MAX questions, and the transport's buffer; reading pauses at either. A malformed frame ends
the connection: HAProxy forwards none of its questions.
"""

import asyncio
import os
from typing import cast

from greenroom.proxies.spoe import frames
from greenroom.proxies.spoe.frames import (
    TWO_NUMBERS,
    WHOLE_NOTIFY,
    BadFrame,
    SpoeFrame,
    ack_bytes,
    frame_bytes,
    pairs_bytes,
)
from greenroom.proxies.spoe.questions import SpoeQuestions
from greenroom.request.arrival import Sender
from greenroom.request.forwarded import SocketEnds, socket_ends

PENDING_MAX = 1_000

CONNECTIONS_MAX = 1_000
"""HAProxy opens some for each of its threads."""

HELLO_S = 5.0

PAUSE_S = 0.02


class SpoeAgent:
    """Make it inside a running event loop."""

    def __init__(self, questions: SpoeQuestions) -> None:
        self.questions = questions
        self.connections: set[SpoeConnection] = set()
        self.draining = False

    def connection(self) -> "SpoeConnection":
        return SpoeConnection(self)

    async def drain(self, seconds: float) -> int:
        """Returns the questions cut off."""
        self.draining = True
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := sum(one.pending for one in self.connections)) and loop.time() < until:
            await asyncio.sleep(PAUSE_S)
        for one in list(self.connections):
            one.disconnect(frames.NORMAL, "greenroom stops")
        return left

    def close(self) -> None:
        self.draining = True
        for one in list(self.connections):
            one.transport.abort()


class SpoeConnection(asyncio.Protocol):
    def __init__(self, agent: SpoeAgent) -> None:
        self.agent = agent
        self.pending = 0
        """Questions answered at once are never counted."""
        self._buffer = b""
        self._frame_max = 0  # until HELLO
        self._answers: list[bytes] = []
        self._reading = self._paused = self._write_paused = self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        ends = socket_ends(transport.get_extra_info)
        self._address, self._server = ends.peer, _name_in_haproxy(ends)
        self._hello = asyncio.get_running_loop().call_later(HELLO_S, self._overdue)
        if len(self.agent.connections) >= CONNECTIONS_MAX or self._proxy() is None:
            self._closed = True
            self.transport.abort()
        else:
            self.agent.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._closed = True
        self._hello.cancel()
        self.agent.connections.discard(self)

    def pause_writing(self) -> None:
        self._write_paused = True
        self._pace()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._pace()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        self._reading = True
        try:
            self._read_frames()
        except BadFrame as wrong:
            self.disconnect(wrong.status, str(wrong))
        except Exception as error:
            self.agent.questions.on_error(error)
            self.transport.abort()
        self._reading = False
        self._flush()
        self._pace()

    def disconnect(self, status: int, message: str) -> None:
        if not self._closed:
            self._closed = True
            self._send(
                frame_bytes(
                    frames.AGENT_DISCONNECT,
                    0,
                    0,
                    pairs_bytes({b"status-code": status, b"message": message.encode()}),
                )
            )
            self._reading = False
            self._flush()
            self.transport.close()

    def _read_frames(self) -> None:
        buffer, at, size = self._buffer, 0, len(self._buffer)
        proxy = self._proxy()  # nothing is reconfigured while one read is answered
        while size - at >= 4 and not self._closed:
            begins = at + 4
            length = int.from_bytes(buffer[at:begins], "big")
            if length > (self._frame_max or frames.FRAME_MAX):
                raise BadFrame(frames.TOO_BIG, "the frame is larger than was agreed")
            ends = begins + length
            if size < ends:
                break
            at = ends
            if (
                buffer.startswith(WHOLE_NOTIFY, begins, ends) and self._frame_max
            ):  # as nearly always
                numbers = TWO_NUMBERS.match(buffer, begins + len(WHOLE_NOTIFY), ends)
                if numbers is None:
                    raise BadFrame(frames.INVALID, "a number ends early or is too long")
                self._ask(numbers[0], buffer[numbers.end() : ends], proxy)
            else:
                self._take(SpoeFrame(buffer[begins:ends]), proxy)
        self._buffer = buffer[at:]

    def _take(self, frame: SpoeFrame, proxy: Sender | None) -> None:
        if frame.kind == frames.NOTIFY and self._frame_max:
            self._ask(frame.numbers, frame.data[frame.at :], proxy)
        elif frame.kind == frames.HAPROXY_HELLO and not self._frame_max:
            self._say_hello(frames.pairs(frame.data, frame.at))
        elif frame.kind == frames.HAPROXY_DISCONNECT:
            self.disconnect(frames.NORMAL, "")
        else:
            raise BadFrame(frames.INVALID, f"a frame of type {frame.kind} is not expected")

    def _say_hello(self, told: dict[bytes, frames.SpoeValue]) -> None:
        versions, most = told.get(b"supported-versions"), told.get(b"max-frame-size")
        if not isinstance(versions, bytes):
            raise BadFrame(frames.NO_VERSION, "supported-versions is missing")
        if frames.VERSION not in [one.strip() for one in versions.split(b",")]:
            raise BadFrame(frames.BAD_VERSION, "version 2.0 is not among the supported ones")
        if not isinstance(most, int):
            raise BadFrame(frames.NO_SIZE, "max-frame-size is missing")
        if most < frames.FRAME_MIN:
            raise BadFrame(frames.BAD_SIZE, f"max-frame-size is less than {frames.FRAME_MIN}")
        self._hello.cancel()
        self._frame_max = min(most, frames.FRAME_MAX)
        said: dict[bytes, bytes | int | bool] = {
            b"version": frames.VERSION,
            b"max-frame-size": self._frame_max,
            b"capabilities": b"pipelining",
        }
        self._send(frame_bytes(frames.AGENT_HELLO, 0, 0, pairs_bytes(said)))
        if told.get(b"healthcheck") is True:
            self._flush_and_close()

    def _ask(self, numbers: bytes, message: bytes, proxy: Sender | None) -> None:
        if proxy is None:  # no longer trusted
            raise BadFrame(frames.INVALID, "only the addresses in trusted_proxies may ask here")
        actions = self.agent.questions.decide(message, numbers, proxy, self._server, self._answered)
        if actions is None:
            self.pending += 1
        else:
            self._answers.append(self._worded(numbers, actions))

    def _answered(self, numbers: bytes, actions: bytes) -> None:
        # May come before `decide` returns.
        self.pending -= 1
        if self._closed:
            return
        self._send(self._worded(numbers, actions))
        if not self._reading:
            self._pace()

    def _worded(self, numbers: bytes, actions: bytes) -> bytes:
        answer = ack_bytes(numbers, actions)
        return (
            answer if len(answer) - 4 <= self._frame_max else ack_bytes(numbers, b"")
        )  # without an outcome nothing is forwarded

    def _proxy(self) -> Sender | None:
        return self.agent.questions.asking.sender(self._address)

    def _send(self, answer: bytes) -> None:
        self._answers.append(answer)
        if not self._reading:
            self._flush()

    def _flush(self) -> None:
        if self._answers:
            self.transport.write(b"".join(self._answers))
            self._answers.clear()

    def _flush_and_close(self) -> None:
        self._reading = False
        self._flush()
        self._closed = True
        self.transport.close()

    def _pace(self) -> None:
        if self._closed or self.transport.is_closing():
            return
        paused = self._write_paused or self.pending >= PENDING_MAX
        if paused is not self._paused:
            self._paused = paused
            if paused:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def _overdue(self) -> None:
        if not self._frame_max:
            self.transport.abort()


def _name_in_haproxy(ends: SocketEnds) -> bytes:
    """The address, or a Unix socket's file name, because names have no slashes there."""
    host, port = ends.server
    if ends.is_file:
        return os.path.basename(ends.path).encode("utf-8", "replace")
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
