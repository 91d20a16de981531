"""An origin that notes what it is sent, and speaks as applications do: JSON, server-sent events,
WebSockets, large bodies.
"""

import base64
import hashlib
import json
import socket
import threading

from attack_rig import NotingOrigin, Seen

PATIENCE_S = 60.0


class TalkingOrigin(NotingOrigin):
    """`/events` sends one event, and the second when `go_on` is set; `/chat` echoes short WebSocket
    messages; all else says what it was sent.
    """

    def __post_init__(self) -> None:
        self.go_on = threading.Event()
        super().__post_init__()

    def _body(self, seen: Seen, stream) -> bytes:
        if not seen.header("transfer-encoding"):
            return super()._body(seen, stream)
        body = b""
        while size := int(stream.readline().partition(b";")[0], 16):
            body += stream.read(size)
            if stream.readline() != b"\r\n":
                self.garbage.append(body)
        while stream.readline() != b"\r\n":
            pass  # trailers, which proxies may pass on
        return body

    def _answer(self, sock: socket.socket, seen: Seen) -> bool:
        path = seen.line.split(" ")[1].partition("?")[0]
        if path.endswith("/events"):
            sock.sendall(
                b"HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            sock.sendall(b"b\r\ndata: one\n\n\r\n")
            self.go_on.wait(PATIENCE_S)
            sock.sendall(b"b\r\ndata: two\n\n\r\n0\r\n\r\n")
            return True
        if path.endswith("/chat") and seen.header("upgrade"):
            self._chat(sock, seen.header("sec-websocket-key")[0])
            return False
        said = json.dumps(
            {
                "method": seen.line.split(" ")[0],
                "path": path,
                "headers": _pairs(seen),
                "length": len(seen.body),
            }
        ).encode()
        head = (
            b"HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(said)
        )
        sock.sendall(head + (b"" if seen.line.startswith("HEAD ") else said))
        return True

    def _chat(self, sock: socket.socket, key: str) -> None:
        accept = base64.b64encode(
            hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        )
        sock.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nX-Origin: yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept
        )
        with sock.makefile("rb") as stream:
            while len(head := stream.read(2)) == 2:
                mask, length = stream.read(4), head[1] & 0x7F
                text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(stream.read(length)))
                sock.sendall(bytes((head[0], length)) + text)
                if head[0] & 0x0F == 8:  # close
                    return


def _pairs(seen: Seen) -> list[list[str]]:
    return [list(line.partition(": ")[::2]) for line in seen.head.split("\r\n")[1:]]
