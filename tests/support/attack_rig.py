"""An origin that notes every byte it is sent, and an attacker who sends any bytes and reads
everything that comes back.

The origin reads requests by the book and calls everything else garbage. So two questions settle
every attack: did garbage, or a request that the room should have held, reach the origin? And what
did the attacker get?
"""

import contextlib
import re
import socket
from dataclasses import dataclass, field
from typing import BinaryIO

from threaded_origin import ThreadedOrigin

PATIENCE_S = 60.0


@dataclass
class Seen:
    """One request as the origin read it."""

    line: str
    head: str
    body: bytes = b""

    def header(self, name: str) -> list[str]:
        """All values of a header (lower-case name)."""
        lines = [line.partition(": ") for line in self.head.split("\r\n")[1:]]
        return [value for key, _, value in lines if key.lower() == name]


@dataclass
class NotingOrigin(ThreadedOrigin):
    """Answers `200` with `X-Origin` to everything; `/big` with as much as is read; `/agree` like a
    WebSocket server that lies.
    """

    seen: list[Seen] = field(default_factory=list)
    garbage: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.url = f"http://127.0.0.1:{self.address[1]}"

    def one(self, sock: socket.socket, stream: BinaryIO) -> bool:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline(65_536)
            if not line:
                if head:
                    self.garbage.append(head)
                return False
            head += line
        text = head[:-4].decode("latin-1")
        first = text.split("\r\n")[0]
        if not re.fullmatch(r"[A-Z]+ \S+ HTTP/1\.1", first):
            self.garbage.append(head)
            return False
        seen = Seen(first, text)
        self.seen.append(seen)
        seen.body = self._body(seen, stream)
        return self._answer(sock, seen)

    def _body(self, seen: Seen, stream) -> bytes:
        lengths, codings = seen.header("content-length"), seen.header("transfer-encoding")
        if len(lengths) + len(codings) > 1:
            self.garbage.append(seen.head.encode("latin-1"))
        if not codings:
            return stream.read(int(lengths[0])) if lengths else b""
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            if stream.readline() != b"\r\n":
                self.garbage.append(body)
        if stream.readline() != b"\r\n":
            self.garbage.append(b"trailers")
        return body

    def _answer(self, sock: socket.socket, seen: Seen) -> bool:
        if " /big" in seen.line:
            sock.sendall(b"HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Length: 1000000000\r\n\r\n")
            while True:
                sock.sendall(b"x" * 65_536)
        if " /agree" in seen.line:
            sock.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: lie\r\n\r\n"
            )
            return False
        body = seen.line.encode("latin-1")
        empty = seen.line.startswith("HEAD ")
        sock.sendall(
            b"HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), b"" if empty else body)
        )
        return True


def lines_of(seen: list[Seen]) -> list[str]:
    """Method and target of these requests."""
    return [one.line.rpartition(" ")[0] for one in seen]


@dataclass
class Got:
    """One answer that the attacker got."""

    status: int
    head: str
    body: bytes

    @property
    def from_origin(self) -> bool:
        """Whether the origin answered; held and refused requests are answered by greenroom."""
        return "\r\nX-Origin: yes" in self.head


class Attacker:
    """One connection that is used like no browser would use it."""

    def __init__(self, address: tuple[str, int], buffer: int = 0, source: str = "") -> None:
        self.sock = socket.socket()
        self.sock.bind((source, 0))  # "": any
        if buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(address)

    def __enter__(self) -> "Attacker":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        """Sends; that the other side has closed already is no failure of an attack."""
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def rest(self) -> bytes:
        """Everything until the other side closes."""
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := self.sock.recv(65_536):
                parts.append(part)
        return b"".join(parts)


def throw(address: tuple[str, int], data: bytes) -> list[Got]:
    """Sends these bytes and no more on a connection of its own; every answer that came."""
    with Attacker(address) as attacker:
        attacker.send(data)
        with contextlib.suppress(OSError):
            attacker.sock.shutdown(socket.SHUT_WR)
        return answers(attacker.rest())


def answers(data: bytes) -> list[Got]:
    """The answers in these bytes, interim ones left out; what follows them must be nothing."""
    found = []
    while data:
        head, blank, data = data.partition(b"\r\n\r\n")
        text = head.decode("latin-1")
        assert blank, data
        assert re.match(r"HTTP/1\.1 \d\d\d ", text), text
        status = int(text[9:12])
        if status == 100:
            continue
        length = re.search(r"\r\nContent-Length: (\d+)", text, re.IGNORECASE)
        size = int(length[1]) if length else len(data)
        found.append(Got(status, text, data[:size]))
        data = data[size:]
    return found
