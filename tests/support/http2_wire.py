"""Just enough HTTP/2 to ask several things at once over one connection without TLS, and to read the
bodies of the answers.
"""

import socket
import struct
from dataclasses import dataclass

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 1
END_HEADERS = 4


@dataclass
class Question:
    """One GET."""

    host: str
    cookies: str = ""
    path: str = "/shop"

    def fields(self) -> list[tuple[str, str]]:
        """The request as HTTP/2 has it, each cookie in a field of its own as browsers send them."""
        fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", self.host),
            (":path", self.path),
            ("accept", "text/html"),
        ]
        return fields + [("cookie", one) for one in self.cookies.split("; ") if one]


def _text(text: str) -> bytes:
    """A string literal of HPACK without Huffman coding."""
    data, size = text.encode(), len(text.encode())
    if size < 127:
        return bytes([size]) + data
    size -= 127
    more = bytearray([127])
    while size >= 128:
        more.append(size % 128 + 128)
        size //= 128
    return bytes([*more, size]) + data


class Http2:
    """One connection; for a `with` block."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock = socket.create_connection(address, timeout=30)
        self.next_stream = 1
        self.sock.sendall(PREFACE + self._frame(SETTINGS, 0, 0))

    def __enter__(self) -> "Http2":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, *questions: Question) -> list[bytes]:
        """The bodies of the answers. All questions are sent before the first answer is read."""
        bodies: dict[int, bytearray] = {}
        sent = b""
        for question in questions:
            block = b"".join(
                b"\0" + _text(name) + _text(value) for name, value in question.fields()
            )
            sent += self._frame(HEADERS, END_STREAM | END_HEADERS, self.next_stream, block)
            bodies[self.next_stream] = bytearray()
            self.next_stream += 2
        self.sock.sendall(sent)
        missing = set(bodies)
        while missing:
            kind, flags, stream, payload = self._read()
            assert kind not in (RST_STREAM, GOAWAY), (kind, payload)
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.sock.sendall(self._frame(kind, ACK, 0, payload if kind == PING else b""))
            if kind == DATA:
                bodies[stream] += payload
                if payload:
                    self.sock.sendall(
                        self._frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload)))
                    )
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                missing.discard(stream)
        return [bytes(body) for body in bodies.values()]

    @staticmethod
    def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
        return (
            struct.pack(">I", len(payload))[1:]
            + bytes([kind, flags])
            + struct.pack(">I", stream)
            + payload
        )

    def _read(self) -> tuple[int, int, int, bytes]:
        head = self._exactly(9)
        return (
            head[3],
            head[4],
            struct.unpack(">I", head[5:])[0] & 0x7FFFFFFF,
            self._exactly(int.from_bytes(head[:3], "big")),
        )

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            assert more, "the proxy ended the connection"
            data += more
        return data
