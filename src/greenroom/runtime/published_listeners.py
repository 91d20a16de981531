"""The listeners of all processes on one configuration store, as rows among the store's sessions;
the row of a killed process is removed after FORGOTTEN_S.
"""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from greenroom.errors import StorageFailed
from greenroom.model.account import LISTENERS, SessionRow
from greenroom.outbound.policy import read_address
from greenroom.settings.process import Address
from greenroom.web.stores import SessionStore

READ_S = 5.0

RENEW_S = 60.0
FORGOTTEN_S = 600.0

PROCESSES_MAX = 10_000

_FAR_MS = 10 * 365 * 86_400_000

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NETWORK = Path("/proc/self/ns/net")

_Places = Collection[tuple[str, int]]


def places_of(listeners: tuple[Address, ...]) -> list[tuple[str, int]]:
    """(file, 0) for Unix sockets; host names are looked up."""
    found = [(address.path, 0) for address in listeners if address.path]
    for host, port in [address[:2] for address in listeners if not address.path]:
        found.append((host, port))
        with contextlib.suppress(OSError):
            found += [
                (str(entry[4][0]), port)
                for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            ]
    return found


class PublishedListeners:
    """Methods that read the store block and raise StorageFailed."""

    def __init__(self, own: _Places, rows: SessionStore, now_ms: Callable[[], int]) -> None:
        """`own`: as `places_of` gives them."""
        self._own = own
        self._rows = rows
        self._now_ms = now_ms
        self._id = secrets.token_hex(16)
        self._machine = this_machine()
        self._is_published = False
        self._siblings: _Places = ()
        self._elsewhere: _Places = ()

    def here(self) -> list[tuple[str, int]]:
        return [*self._own, *self._siblings]

    def everywhere(self) -> list[tuple[str, int]]:
        """`here`, and what another process reaches by the same address on its own machine."""
        return [*self.here(), *self._elsewhere]

    def everywhere_now(self) -> list[tuple[str, int]]:
        """Read from the store; the known ones when it cannot be read."""
        with contextlib.suppress(StorageFailed):
            self.read()
        return self.everywhere()

    def publish(self) -> None:
        """Renews this process's listeners, and removes those of killed processes."""
        now_ms = self._now_ms()
        found = {row.secret_sha256: row for row in self._rows.rows(LISTENERS)}
        if self._id in found:
            self._rows.seen(self._id, now_ms)
        else:
            self._rows.add(
                SessionRow(
                    kind=LISTENERS,
                    secret_sha256=self._id,
                    id=self._id,
                    owner=self._machine,
                    created_ms=now_ms,
                    seen_ms=now_ms,
                    expires_ms=now_ms + _FAR_MS,
                    facts=msgspec.json.encode((tuple(self._own), own_addresses())).decode(),
                ),
                PROCESSES_MAX,
            )
        self._is_published = True
        for key, row in found.items():
            if key != self._id and row.seen_ms < now_ms - FORGOTTEN_S * 1000:
                self._rows.take(LISTENERS, key)

    def read(self) -> None:
        siblings: list[tuple[str, int]] = []
        elsewhere: list[tuple[str, int]] = []
        for row in self._rows.rows(LISTENERS):
            if row.secret_sha256 == self._id:
                continue
            places, addresses = msgspec.json.decode(
                row.facts, type=tuple[tuple[tuple[str, int], ...], tuple[str, ...]]
            )
            if row.owner == self._machine:
                siblings += places
            else:
                elsewhere += _seen_from_outside(places, addresses)
        self._siblings, self._elsewhere = tuple(siblings), tuple(elsewhere)

    def withdraw(self) -> None:
        if self._is_published:
            with contextlib.suppress(StorageFailed):
                self._rows.take(LISTENERS, self._id)

    async def run(self) -> None:
        turns = 0
        while True:
            try:
                if turns % int(RENEW_S / READ_S) == 0:
                    await asyncio.to_thread(self.publish)
                await asyncio.to_thread(self.read)
                turns += 1
            except StorageFailed:
                turns = 0
                self._is_published = False  # ends without waiting for a store that is away
            await asyncio.sleep(READ_S)


def _seen_from_outside(places: _Places, addresses: Collection[str]) -> Iterator[tuple[str, int]]:
    """Replaces "every address" with the machine's own, because it would mean this machine here.
    Omits socket files.
    """
    for text, port in places:
        address = read_address(text)
        if address is None:
            continue
        yield from ((one, port) for one in (addresses if address.is_unspecified else (text,)))


def this_machine() -> str:
    """The same for two processes if, and only if, loopback means the same to them."""
    try:
        return f"{_BOOT.read_text().strip()} {os.readlink(_NETWORK)}"
    except OSError:
        return socket.gethostname()


def own_addresses() -> tuple[str, ...]:
    """Sends no packet."""
    found = ["127.0.0.1", "::1"]
    with contextlib.suppress(OSError):
        found += [str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None)]
    for family, other in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((other, 9))
            found.append(str(probe.getsockname()[0]))
    return tuple(dict.fromkeys(found))
