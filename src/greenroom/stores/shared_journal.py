"""Lets the rooms of one process share one journal: each payload is one byte of name length, the room's id, and its records."""

from collections.abc import Iterable, Iterator

from greenroom.admission.records import LedgerMemory, remember
from greenroom.ports import Journal


class RoomJournal:
    """The journal as one room sees it."""

    def __init__(self, journal: Journal, room_id: str) -> None:
        """Raises ValueError when the id is empty or longer than 255 bytes of UTF-8."""
        name = room_id.encode()
        if not 0 < len(name) < 256:
            raise ValueError(f"a room id has 1 to 255 bytes, not {len(name)}")
        self._journal = journal
        self._head = bytes((len(name),)) + name

    def append(self, records: bytes) -> None:
        """See `ports.Journal`."""
        self._journal.append(self._head + records)

    def wrapped(self, payloads: Iterable[bytes]) -> Iterator[bytes]:
        """The room's payloads as they stand in the shared journal."""
        for payload in payloads:
            yield self._head + payload


def memories(payloads: Iterable[bytes]) -> dict[str, LedgerMemory]:
    """Room id -> what all its records add up to. A payload that is not a room's is left out: it costs at most its own visitors."""
    by_room: dict[bytes, list[bytes]] = {}
    for payload in payloads:
        head = 1 + payload[0] if payload else 0
        if 1 < head < len(payload):
            by_room.setdefault(payload[1:head], []).append(payload[head:])
    return {name.decode("utf-8", "replace"): remember(parts) for name, parts in by_room.items()}
