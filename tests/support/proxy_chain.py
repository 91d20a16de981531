"""A real proxy of examples/ between visitors and an application, with greenroom behind or beside
it.
"""

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real_proxies import START_S, command_of, hasten, listens, running_proxy, write_configuration


@dataclass
class Chain:
    """One proxy before greenroom and the application."""

    name: str
    address: tuple[str, int]
    greenroom: Any
    origin: Any
    visitor_class: Any
    eventually: Any
    restart: Callable[[], None] = lambda: None

    def visitor(self) -> Any:
        return self.visitor_class(self.address)

    def raw(self, data: bytes) -> int:
        """The status that these bytes get."""
        with socket.create_connection(self.address, timeout=60) as sock:
            sock.sendall(data)
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return answer.status


REFUSED = b"GET /a%5cb HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def chain_of(
    name: str,
    folder: Path,
    greenroom: Any,
    origin: Any,
    visitor_class: Any,
    free_port: Callable[[], int],
) -> Iterator[Chain]:
    """The proxy of this example, until the block ends."""
    at = {
        "proxy": free_port(),
        "greenroom": free_port(),
        "origin": int(origin.url.rpartition(":")[2]),
    }
    write_configuration(name, folder, at)
    hasten(folder)
    config = (
        "--config",
        str(folder / "greenroom.toml"),
        "--control",
        "127.0.0.1:0",
        "--data",
        str(folder / "data"),
    )
    running = greenroom.run(command_of(name), *config)
    with contextlib.ExitStack() as proxies:

        def start() -> None:
            proxies.close()
            proxy = proxies.enter_context(running_proxy(name, folder))
            greenroom.eventually(
                lambda: listens(proxy, folder, at["proxy"]),
                lambda: (folder / "proxy.log").read_text(),
            )

        start()
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        found = Chain(
            name,
            ("127.0.0.1", at["proxy"]),
            running,
            origin,
            visitor_class,
            greenroom.eventually,
            start,
        )
        greenroom.eventually(
            lambda: found.raw(REFUSED) in (400, 404), "greenroom is asked: it refuses this one"
        )
        yield found


def seen(answer: Any) -> dict[str, str]:
    """The headers that the application was sent."""
    return {name.lower(): value for name, value in json.loads(answer.body)["headers"]}
