"""A minimal browser: HTTP/1.1, cookies, and reports of pages that want to be reloaded."""

import asyncio
from email.parser import BytesParser
from email.policy import HTTP
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

TIMEOUT_S = 20.0

ANSWER_MAX = 1 << 20

_HEADERS = (
    "Host: {host}\r\nUser-Agent: greenroom-demo-crowd\r\nAccept:"
    " text/html,application/xhtml+xml\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode:"
    " navigate\r\nSec-Fetch-Dest: document\r\nConnection: close\r\n"
)


class ShopPage(NamedTuple):
    """`refresh_s` is None when the page does not reload itself."""

    status: int
    refresh_s: float | None


class Browser:
    def __init__(self, address: str, port: int, host: str) -> None:
        self._address = address
        self._port = port
        self._host = host
        self._cookies: dict[str, str] = {}

    async def load(self, path: str, method: str = "GET") -> ShopPage:
        """Raises OSError (TimeoutError included) when nothing usable comes back."""
        head = f"{method} {path} HTTP/1.1\r\n" + _HEADERS.format(host=self._host)
        if method == "POST":
            head += "Content-Length: 0\r\n"
        if self._cookies:
            head += (
                "Cookie: "
                + "; ".join(f"{name}={value}" for name, value in self._cookies.items())
                + "\r\n"
            )
        async with asyncio.timeout(TIMEOUT_S):
            answer = await self._exchange(head.encode() + b"\r\n")
        first, _, rest = answer.partition(b"\r\n")
        words = first.split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise ConnectionError("not an HTTP answer")
        headers = BytesParser(policy=HTTP).parsebytes(
            rest.partition(b"\r\n\r\n")[0], headersonly=True
        )
        for line in headers.get_all("Set-Cookie", []):
            self._keep(str(line))
        return ShopPage(int(words[1]), _seconds(str(headers.get("Refresh", ""))))

    async def _exchange(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self._address, self._port)
        try:
            writer.write(request)
            await writer.drain()
            return await _read_all(reader)
        finally:
            writer.close()

    def _keep(self, line: str) -> None:
        try:
            jar = SimpleCookie(line)
        except CookieError:
            return
        for name, morsel in jar.items():
            if morsel["max-age"] == "0":
                self._cookies.pop(name, None)
            else:
                self._cookies[name] = morsel.coded_value


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    parts, size = [], 0
    while size < ANSWER_MAX and (part := await reader.read(65_536)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _seconds(refresh: str) -> float | None:
    number = refresh.split(";")[0].strip()
    return float(number) if number.isdigit() else None
