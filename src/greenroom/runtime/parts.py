"""Which parts of greenroom a process has, and the addresses that they listen on."""

import contextlib
import os
import socket
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from greenroom.config.addresses import exposure_notes
from greenroom.config.config import Config
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.inherited import inherited_sockets
from greenroom.runtime.listener import bind, bound
from greenroom.settings.process import Address

HANDOVER_S = 15.0
"""Beyond the time to drain: for a process that is being replaced to close its journals."""


class ProcessParts(NamedTuple):
    gateway: bool = True
    control: bool = True
    signals: bool = True
    logs: bool = True


EVERYTHING = ProcessParts()
ONLY_DECISIONS = ProcessParts(gateway=False)
EMBEDDED = ProcessParts(gateway=False, control=False, signals=False, logs=False)


class Listeners(NamedTuple):
    visitors: socket.socket | None
    control: socket.socket | None
    decide: socket.socket | None

    def address(self, name: str, written: Address) -> Address:
        """The real address, also for port 0; `written` when there is no such listener."""
        listener: socket.socket | None = getattr(self, name)
        return bound(listener) if listener else written

    def addresses(self, status: Address | None) -> tuple[Address, ...]:
        return (*(bound(one) for one in self if one), *([status] if status else []))


def claim(
    config: Config, parts: ProcessParts, undo: contextlib.ExitStack, *, one_of_many: bool
) -> tuple[DataDir, Listeners]:
    """Before anything else is begun. Raises CannotStart. With sockets from the parent process it
    waits for the data directory of one that still drains.
    """
    alone = "visitors" if parts.gateway else "decide"
    inherited = inherited_sockets(os.environ, os.getpid(), alone) if parts.signals else {}
    wait_s = config.drain_seconds + HANDOVER_S if inherited else 0.0
    data = DataDir(config.data, shared=config.shared is not None, wait_s=wait_s)
    undo.callback(data.release)
    return data, take_addresses(config, parts, undo, one_of_many=one_of_many, inherited=inherited)


def take_addresses(
    config: Config,
    parts: ProcessParts,
    undo: contextlib.ExitStack,
    *,
    one_of_many: bool,
    inherited: Mapping[str, socket.socket] = MappingProxyType({}),
) -> Listeners:
    """An `inherited` socket counts more than the settings. Raises CannotStart."""
    mode = int(config.socket_mode, 8)

    def taken(
        name: str, address: Address | None, purpose: str, *, shared: bool = False
    ) -> socket.socket | None:
        if address is None and name not in inherited:
            return None
        listener = (
            inherited[name]
            if name in inherited or address is None
            else bind(address, purpose, reuse_port=shared, mode=mode)
        )
        undo.callback(listener.close)
        return listener

    return Listeners(
        taken("visitors", config.listen if parts.gateway else None, "visitors", shared=one_of_many),
        taken("control", config.control if parts.control else None, "the control listener"),
        taken("decide", config.decide, "other proxies"),
    )


def announcement(
    config: Config,
    parts: ProcessParts,
    listen: Address,
    decide: Address | None,
    control: Address,
    more: Iterable[str] = (),
) -> list[str]:
    origin = config.origin.url if config.origin else "set by each zone"
    secure = "https" if config.control_tls else "http"
    lines = [
        (parts.gateway, f"visitors   {listen.url('https' if config.tls else 'http')}"),
        (
            decide is not None,
            f"decide     {decide.url('http') if decide else ''}  (other proxies ask here)",
        ),
        (
            parts.control,
            f"control    {control.url(secure)}  (dashboard, /status /metrics /healthz /readyz)",
        ),
        *((True, line) for line in more),
        *(
            (parts.control, f"note       {note}")
            for note in exposure_notes(
                config.control, private=bool(config.control_tls or config.trusted_proxies)
            )
        ),
        (True, f"data       {config.data}"),
        (parts.gateway, f"origin     {origin}"),
        (True, "ready"),
    ]
    return [line for wanted, line in lines if wanted]
