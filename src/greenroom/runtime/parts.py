"""Which parts of greenroom a process has, and the addresses that they listen on."""

import contextlib
import socket
from typing import NamedTuple

from greenroom.config.settings import Address, Config
from greenroom.runtime.listener import bind, bound


class ProcessParts(NamedTuple):
    """A whole process has all; one that only answers other proxies has no gateway; one inside an application leaves that its signals."""

    gateway: bool = True
    control: bool = True
    signals: bool = True
    logs: bool = True


EVERYTHING = ProcessParts()
ONLY_DECISIONS = ProcessParts(gateway=False)


class Listeners(NamedTuple):
    """Sockets that are bound and do not listen yet."""

    visitors: socket.socket | None
    control: socket.socket | None
    decide: socket.socket | None

    def address(self, name: str, written: Address) -> Address:
        """Where this one is, also when port 0 was asked for; `written` when the process has no such listener."""
        listener: socket.socket | None = getattr(self, name)
        return bound(listener) if listener else written


def take_addresses(config: Config, parts: ProcessParts, undo: contextlib.ExitStack, *, one_of_many: bool) -> Listeners:
    """Takes every address before anything else is begun. Raises CannotStart."""

    def taken(address: Address | None, purpose: str, *, shared: bool = False) -> socket.socket | None:
        if address is None:
            return None
        listener = bind(address, purpose, reuse_port=shared)
        undo.callback(listener.close)
        return listener

    return Listeners(
        taken(config.listen if parts.gateway else None, "visitors", shared=one_of_many),
        taken(config.control if parts.control else None, "the control listener"),
        taken(config.decide, "other proxies"),
    )


def announcement(config: Config, parts: ProcessParts, listen: Address, decide: Address | None, control: Address) -> list[str]:
    """What an operator is told at the start."""
    origin = config.origin.url if config.origin else "set by each zone"
    lines = [
        (parts.gateway, f"visitors   http{'s' if config.tls else ''}://{listen}"),
        (decide is not None, f"decide     http://{decide}  (other proxies ask here)"),
        (parts.control, f"control    http://{control}  (/status /metrics /healthz /readyz)"),
        (True, f"data       {config.data}"),
        (parts.gateway, f"origin     {origin}"),
        (True, "ready"),
    ]
    return [line for wanted, line in lines if wanted]
