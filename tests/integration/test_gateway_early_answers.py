"""An origin that answers before it has read the request, and then resets the connection: what it
said is heard.
"""

import asyncio
import socket
import ssl

import pytest
import trustme

from greenroom.gateway.origin.address import Origin

REFUSED = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"
PIECE = b"x" * 4096


class Abrupt:
    """An origin that answers and resets within one step of the event loop: no one else does
    anything between the two.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._tls = tls
        self._peer: socket.socket
        self.origin = Origin.of(
            f"http{'s' if tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}", verify=False
        )

    def request_begins(self) -> None:
        """Waits for it, in a thread."""
        with self._listener:
            accepted, _ = self._listener.accept()
        accepted.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # or the answer waits, and the reset overtakes it
        self._peer = self._tls.wrap_socket(accepted, server_side=True) if self._tls else accepted
        assert self._peer.recv(1000)

    def answers_and_resets(self, answer: bytes) -> None:
        self._peer.send(answer)
        self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self._peer.close()


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [(REFUSED, 413, b"big"), (REFUSED[:-1], 413, b"bi"), (REFUSED[:9], 502, None)],
    ids=["whole", "half a body", "half a head"],
)
async def test_an_answer_is_heard_also_when_the_next_write_finds_the_connection_reset(
    rig, encrypted, answer, status, body
) -> None:
    tls = None
    if encrypted:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    abrupt = Abrupt(tls)
    async with rig.running(origin=abrupt.origin), rig.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n" + PIECE)
        await asyncio.to_thread(abrupt.request_begins)
        (visitor,) = rig.gateway._connections.open
        abrupt.answers_and_resets(answer)
        visitor.data_received(
            PIECE
        )  # more of the body is written before what the origin sent is read
        response = await talk.response()
        assert response.status == status
        if body is not None:
            assert (response.body, response.whole) == (body, body == b"big")
        await rig.until(lambda: not rig.counts.origin_connections_open, "the connection is closed")
