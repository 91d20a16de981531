"""What a proxy's own way of asking costs: the least that can answer it, in the place of greenroom.

    python bench/proxy_floors.py spoe PORT SOCKET

nginx asks another nginx, which answers 204 to everything; HAProxy asks the agent below, which says
"forward" to every question and reads of it no more than the numbers that an answer repeats.
"""

import asyncio
import re
import sys
from pathlib import Path
from typing import cast

import uvloop

from greenroom.proxies.spoe.frames import (
    ACK,
    AGENT_HELLO,
    HAPROXY_HELLO,
    NOTIFY,
    frame_bytes,
    number,
    pairs,
    pairs_bytes,
)
from greenroom.proxies.spoe.questions import FORWARD

YES_CONF = """
worker_processes 1; daemon off; error_log stderr; pid {folder}/yes.pid; events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{port} backlog=1024; listen "unix:{folder}/yes.sock" backlog=1024; location / {{ return 204; }} }} }}
"""


def nginx_asks(example: Path, folder: Path, proxy: int, asked: int, origin: int) -> Path:
    """The example's configuration, reduced to the question: no header is set for it, and nothing
    but the status is read of the answer.
    """
    text = example.read_text()
    for written, real in ((8000, proxy), (8082, asked), (3000, origin)):
        text = re.sub(rf"\b{written}\b", str(real), text)
    text = re.sub(r"auth_request_set \$greenroom_(?!status).*|add_header Set-Cookie .*", "", text)
    text = re.sub(r"proxy_set_header (Cookie|Greenroom-Verdict) .*", "", text)
    text = re.sub(r"proxy_set_header X-(Original|Forwarded)-\S+ .*", "", text)
    (folder / "open-until.map").write_text("")
    path = folder / "floor.conf"
    path.write_text(text)
    return path


class Yes(asyncio.Protocol):
    """One connection of HAProxy."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """HAProxy has connected."""
        self.transport, self.left = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        """Frames, or pieces of them."""
        data, answers = self.left + data, []
        while len(data) >= 4 and len(data) >= 4 + (length := int.from_bytes(data[:4], "big")):
            frame, data = data[4 : 4 + length], data[4 + length :]
            stream, at = number(frame, 5)
            question, at = number(frame, at)
            if frame[0] == HAPROXY_HELLO:
                said: dict[bytes, bytes | int | bool] = {
                    b"version": b"2.0",
                    b"capabilities": b"pipelining",
                }
                said[b"max-frame-size"] = cast(int, pairs(frame, at)[b"max-frame-size"])
                answers.append(frame_bytes(AGENT_HELLO, 0, 0, pairs_bytes(said)))
            elif frame[0] == NOTIFY:
                answers.append(frame_bytes(ACK, stream, question, FORWARD))
        self.left = data
        if answers:
            self.transport.write(b"".join(answers))


async def agent(port: int, path: str) -> None:
    """Listens for ever, also on a Unix socket."""
    loop = asyncio.get_running_loop()
    by_file = await loop.create_unix_server(Yes, path, backlog=1024)
    by_port = await loop.create_server(Yes, "127.0.0.1", port, backlog=1024)
    await asyncio.gather(
        by_file.serve_forever(), by_port.serve_forever()
    )  # one that is not kept ends with the next collection


if __name__ == "__main__":
    uvloop.run(agent(int(sys.argv[2]), sys.argv[3]))
