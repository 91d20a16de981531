"""The coordinator's office in the global Redis: reports are brought there, one holder answers them, and its memory outlives it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from redis.exceptions import RedisError, ResponseError

from greenroom.errors import StorageFailed
from greenroom.stores.redis.library import Library, part
from greenroom.stores.redis.link import Client

LEADER_LIBRARY = Library((part("office"),))

TIMEOUT_S = 2.0
"""A client that says nothing for so long is given up: four times the longest wait asked for, and half of what makes a link cut off."""

TERM_MS = 2_000
"""A term that is not renewed for so long is over: shorter than the 4 s after which a data center counts as cut off."""


class LeaseTerm(msgspec.Struct, frozen=True):
    """Who holds office, and since which take-over: both are said with everything done in office."""

    holder: str
    number: int


class Delivery(msgspec.Struct, frozen=True):
    """What became of a report: the term that has just begun for the candidate who brought it, or None, and who holds office."""

    term: LeaseTerm | None
    now_ms: int
    holder: str


class SavedState(msgspec.Struct, frozen=True):
    """What the office remembers. `life` names this life of the server: another one than before may have forgotten the last writes."""

    now_ms: int
    life: str
    rows: Mapping[str, bytes]


class RedisLeaderLease:
    """Calls the functions of `office.lua`. Every method raises StorageFailed when Redis cannot be reached or refuses.

    Nobody else waits on these calls, and the client must give up by itself after a few seconds: a cut link says nothing.
    """

    def __init__(self, client: Client, prefix: str = "greenroom") -> None:
        """`client` must not decode answers; its socket timeout (TIMEOUT_S) is longer than any wait asked for here."""
        self._client = client
        place = f"{prefix}:{{office}}:"  # one hash tag: one shard
        self._office, self._mail, self._bell, self._memory = (place + name for name in ("holder", "mail", "bell", "memory"))
        self._answers = place + "answers:"

    # -- for a data center -------------------------------------------------------------------------------------------------------

    async def bring(self, data_center: str, report: bytes, candidate: str) -> Delivery:
        """Leaves a report in the place of an older one (an empty one: nothing), and takes office for `candidate` when nobody holds it.

        An empty candidate does not want it.
        """
        keys = (self._office, self._mail, self._bell)
        number, now_ms, holder = await self._call("bring", keys, (data_center, report, candidate, TERM_MS))
        return Delivery(LeaseTerm(candidate, number) if number else None, now_ms, holder.decode())

    async def answer(self, data_center: str, wait_s: float) -> bytes | None:
        """The next answer, or None after so many seconds (at least 10 ms)."""
        return await pop(self._client, self._answers + data_center, wait_s)

    # -- for whoever holds office ------------------------------------------------------------------------------------------------

    async def remember(self, term: LeaseTerm) -> SavedState | None:
        """Everything that was written down; None when the term is over."""
        found = await self._in_office("remember", (self._office, self._memory), term, ())
        if found is None:
            return None
        rows = {field.decode(): row for field, row in zip(found[2::2], found[3::2], strict=True)}
        return SavedState(found[0], found[1].decode(), rows)

    async def collect(self, term: LeaseTerm, wait_s: float) -> list[tuple[str, bytes]] | None:
        """All reports that have been brought, by data center; waits for the first one. None when the term is over."""
        if wait_s > 0:
            await pop(self._client, self._bell, wait_s)
        mail = await self._in_office("collect", (self._office, self._mail, self._bell), term, ())
        return None if mail is None else [(name.decode(), report) for name, report in zip(mail[::2], mail[1::2], strict=True)]

    async def commit(
        self, term: LeaseTerm, rows: Mapping[str, bytes], forgotten: Sequence[str] = (), answers: Iterable[tuple[str, bytes]] = ()
    ) -> bool:
        """Writes down rows, then hands out answers, in one step, and renews the term. False: the term is over, nothing was done."""
        keys, sealed = [self._office, self._memory], []
        for data_center, answer in answers:
            keys.append(self._answers + data_center)
            sealed.append(answer)
        written = [part for row in rows.items() for part in row]
        arguments = (TERM_MS, len(written), *written, len(forgotten), *forgotten, *sealed)
        return await self._in_office("commit", keys, term, arguments) is not None

    async def resign(self, term: LeaseTerm) -> None:
        """Ends the term, so that the next holder need not wait for its end."""
        await self._call("resign", (self._office,), (term.holder, term.number))

    # -- inside ------------------------------------------------------------------------------------------------------------------

    async def _in_office(self, function: str, keys: Sequence[str], term: LeaseTerm, arguments: tuple[Any, ...]) -> Any:
        try:
            return await self._call(function, keys, (term.holder, term.number, *arguments))
        except StorageFailed as failed:
            if isinstance(failed.__cause__, ResponseError) and str(failed.__cause__).startswith("DEPOSED"):
                return None
            raise

    async def _call(self, function: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        return await call_function(self._client, LEADER_LIBRARY, function, keys, arguments)


async def call_function(client: Client, library: Library, name: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
    """Calls it, and once more after loading its library when the server (a new replica, an emptied server) does not have it."""
    function = library.function(name).decode()
    try:
        try:
            return await client.fcall(function, len(keys), *keys, *arguments)
        except ResponseError as error:
            if "unction not found" not in str(error):
                raise
            await client.function_load(library.source, replace=True)
            return await client.fcall(function, len(keys), *keys, *arguments)
    except (RedisError, OSError) as error:
        raise StorageFailed(f"Redis: {error}") from error


async def pop(client: Client, key: str, wait_s: float) -> bytes | None:
    """The first of a list as soon as there is one, or None after so many seconds (at least 10 ms)."""
    try:
        found = await client.blpop([key], timeout=max(0.01, wait_s))
    except (RedisError, OSError) as error:
        raise StorageFailed(f"Redis: {error}") from error
    return cast(bytes, found[1]) if found else None
