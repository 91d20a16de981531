"""Sends an agent's reports to the management API over a persistent connection."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpcore
import msgspec

from greenroom.health.agent import ReportFailed
from greenroom.model.probe import AgentOrders, AgentReport
from greenroom.model.zone import ACCOUNT_ID

TIMEOUT_S = 10.0
GOODBYE_S = 2.0
ANSWER_MAX = 64 << 20

TAKEN_CODE = 28020
"""After a crash the name is free again in a moment."""

HOPELESS = frozenset({400, 401, 403, 404, 405, 413})


class AgentLink:
    """Tries the addresses in turn."""

    def __init__(
        self, urls: Sequence[str], token: str, name: str, tls: ssl.SSLContext | None = None
    ) -> None:
        path = f"/client/v4/accounts/{ACCOUNT_ID}/probe_agents/{quote(name, safe='')}"
        self._urls = [url.rstrip("/") + path for url in urls]
        self._headers = [
            ("Authorization", f"Bearer {token}"),
            ("Content-Type", "application/json"),
            ("User-Agent", "greenroom-probe"),
        ]
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, max_connections=2, keepalive_expiry=60
        )
        self._joined = False

    async def send(self, report: AgentReport) -> AgentOrders:
        """Raises ReportFailed; `hopeless` only before the first accepted report."""
        body = msgspec.json.encode(report)
        failed: ReportFailed | None = None
        for number, url in enumerate(self._urls):
            try:
                orders = await self._put(url, body)
            except ReportFailed as error:
                failed = error
                continue
            # the one that answered goes first from now on
            self._urls.insert(0, self._urls.pop(number))
            self._joined = True
            return orders
        raise failed or ReportFailed("no address to report to", hopeless=True)

    async def goodbye(self) -> None:
        try:
            async with asyncio.timeout(GOODBYE_S):
                await self._pool.request(
                    "DELETE",
                    self._urls[0],
                    headers=[*self._headers, ("Host", _host(self._urls[0]))],
                )
        except (
            OSError,
            TimeoutError,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
        ):
            pass
        await self._pool.aclose()

    async def _put(self, url: str, body: bytes) -> AgentOrders:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                headers = [*self._headers, ("Host", _host(url)), ("Content-Length", str(len(body)))]
                status, text = await self._exchange(url, headers, body)
        except (
            OSError,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
        ) as error:
            raise ReportFailed(f"{_host(url)} cannot be reached: {_reason(error)}") from None
        try:
            document = msgspec.json.decode(text)
            if status == 200:
                return msgspec.convert(document["result"], AgentOrders)
            raise self._refused(url, status, document)
        except (msgspec.MsgspecError, KeyError, TypeError, IndexError):
            raise ReportFailed(
                f"{_host(url)} answers {status} and is not the management API",
                hopeless=not self._joined,
            ) from None

    async def _exchange(
        self, url: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, bytes]:
        async with self._pool.stream("PUT", url, headers=headers, content=body) as response:
            parts, size = [], 0
            async for part in response.aiter_stream():
                size += len(part)
                if size > ANSWER_MAX:
                    raise ReportFailed(
                        f"{_host(url)}: the answer is larger than {ANSWER_MAX} bytes"
                    )
                parts.append(part)
        return response.status, b"".join(parts)

    def _refused(self, url: str, status: int, document: Any) -> ReportFailed:
        error = document["errors"][0]
        hopeless = status in HOPELESS and error["code"] != TAKEN_CODE and not self._joined
        return ReportFailed(f"{_host(url)}: {error['message']}", hopeless=hopeless)


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0]


def _reason(error: BaseException) -> str:
    cause = error.__cause__
    return (
        str(error)
        or (str(cause) if cause else "")
        or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
    )
