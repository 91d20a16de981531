"""Where books are shared by many processes: the Redis of this data center, the one of all, and which data centers there are.

Reads the keys of `settings.Server` that speak of it, and puts together what keeps a data center in step with the coordinator.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from greenroom.admission.lease import CUT_OFF_MS
from greenroom.control.state import SyncState
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.room import Room
from greenroom.ports import Books
from greenroom.runtime.settings import Server
from greenroom.stores.redis.link import Client, Link
from greenroom.stores.redis.office import TIMEOUT_S, RedisOffice
from greenroom.stores.redis.turn import RedisTurn
from greenroom.sync.data_center import DataCenterSync
from greenroom.sync.host import Host

NAME = "letters, digits, `.`, `_` and `-`, at most 63 of them"


@dataclass(frozen=True, slots=True)
class Shared:
    """What is written, checked. `data_centers` are all there are, this one included."""

    redis: Link
    global_redis: Link
    data_center: str
    data_centers: tuple[str, ...] = field(compare=False)  # may change while running

    def __str__(self) -> str:
        return f"{self.redis} (data center {self.data_center}, all of them in {self.global_redis})"


def read_shared(server: Server, problems: list[Problem]) -> Shared | None:
    """None when books are this process's own, or when something is wrong with what is written."""
    found: list[Problem] = []
    name, names = server.datacenter, server.datacenters or (server.datacenter,)
    found += [
        Problem(pointer, f"must be {NAME}, not {text!r}")
        for pointer, text in [("datacenter", name), *((f"datacenters[{index}]", text) for index, text in enumerate(server.datacenters))]
        if not _is_name(text)
    ]
    if name not in names:
        found.append(Problem("datacenters", f"must list this one too, {name!r}"))
    if len(set(names)) < len(names):
        found.append(Problem("datacenters", "must not name one twice"))
    if server.redis and len(names) > 1 and not server.global_redis:
        found.append(Problem("global_redis", "is required when there are several data centers"))
    if not server.redis:
        alone = [key for key in ("global_redis", "datacenters") if getattr(server, key)]
        found += [Problem(key, "needs redis: the Redis of this data center") for key in alone]
    links = {key: _link(key, getattr(server, key), found) for key in ("redis", "global_redis")}
    problems += found
    redis = links["redis"]
    return None if found or redis is None else Shared(redis, links["global_redis"] or redis, name, tuple(names))


def _link(key: str, url: str, problems: list[Problem]) -> Link | None:
    try:
        return Link(url, key) if url else None
    except InvalidConfig as error:
        problems += error.problems
        return None


def _is_name(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= 63 and all(one.isascii() and (one.isalnum() or one in "._-") for one in text)


class Membership:
    """The part of one process in keeping its data center in step. Make it inside the event loop; `close` when done."""

    def __init__(
        self,
        shared: Shared,
        books: Books,
        rooms: Callable[[], Sequence[Room]],
        data_centers: Callable[[], Sequence[str]],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`rooms` gives the rooms as ledgers are told, the same object as long as nothing changed; so does `data_centers`."""
        self._rooms = rooms
        self._seen: Sequence[Room] | None = None
        self._by_id: Mapping[str, Room] = {}
        process = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._clients = [shared.global_redis.client(TIMEOUT_S), shared.redis.client(TIMEOUT_S)]
        office = RedisOffice(self._clients[0])
        host = self._host = Host(office, rooms, data_centers, secrets.randbits, on_error)
        turn = RedisTurn(self._clients[1], process, shared.data_center)
        self._sync = DataCenterSync(shared.data_center, process, books, self._rooms_by_id, office, turn, host, on_error)

    async def run(self) -> None:
        """Until cancelled; then this process's turn and office are free for others at once."""
        await self._sync.run()

    async def borrow(self, room_id: str, want: int) -> None:
        """See `ports.Borrow`."""
        await self._sync.borrow(room_id, want)

    def state(self) -> SyncState:
        """For operators."""
        contact = self._sync.contact()
        answered_s = None if contact.answered_age_ms is None else contact.answered_age_ms / 1000
        return SyncState(
            data_center=contact.data_center,
            turn=contact.turn,
            office=contact.office,
            holder=contact.holder,
            answered_s=answered_s,
            cut_off=answered_s is None or answered_s * 1000 >= CUT_OFF_MS,
            letters=contact.letters,
            unanswered=contact.unanswered,
            answers=self._host.answers,
            silent_s=self._host.silent_s(),
        )

    async def close(self) -> None:
        """Ends the connections."""
        await asyncio.gather(*map(_closed, self._clients), return_exceptions=True)

    def _rooms_by_id(self) -> Mapping[str, Room]:
        rooms = self._rooms()
        if rooms is not self._seen:
            self._seen, self._by_id = rooms, {room.id: room for room in rooms}
        return self._by_id


def _closed(client: Client) -> Awaitable[None]:
    return client.aclose()
