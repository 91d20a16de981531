import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from greenroom.settings.limits import Limits

MakeProtocol = Callable[[], asyncio.Protocol]


class ProtocolsByFirstByte:
    """`limits` bounds silent clients in number and time."""

    def __init__(
        self, usual: MakeProtocol, others: Mapping[int, MakeProtocol], limits: Limits
    ) -> None:
        self.usual = usual
        self.others = others
        self.limits = limits
        self.silent = 0

    def connection(self) -> asyncio.Protocol:
        return _Undecided(self)


class _Undecided(asyncio.Protocol):
    def __init__(self, protocols: ProtocolsByFirstByte) -> None:
        self._protocols = protocols

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._protocols.silent += 1
        self._timer = asyncio.get_running_loop().call_later(
            self._protocols.limits.head_s, self._transport.abort
        )
        if self._protocols.silent > self._protocols.limits.connections:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._decided()
        chosen = self._protocols.others.get(data[0], self._protocols.usual)()
        self._transport.set_protocol(chosen)
        chosen.connection_made(self._transport)
        chosen.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._decided()

    def _decided(self) -> None:
        self._timer.cancel()
        self._protocols.silent -= 1
