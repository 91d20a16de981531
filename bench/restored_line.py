"""A long line that is on the books from the start, as after a restart of greenroom: for
`bench/million.py`.

Nothing is asked over HTTP. Places are written down with greenroom's own code, where a process finds
them when it starts: into the journal of the room, or into the sorted sets in Redis with the
functions of its library; and each visitor gets a ticket, sealed with the key of the data directory.
The visitors came within the last ten minutes; their last try was a minute ago, and the next one is
expected now.
"""

import os
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from greenroom.admission.records import NOBODY, NOTE, PLACE, pack
from greenroom.config_file.documents import room_id
from greenroom.decision.tickets import Sealer
from greenroom.keys.ticket_keys import KeyRing
from greenroom.ledgers.journal import FileJournal
from greenroom.ledgers.redis.library import PARTS, Library, part
from greenroom.model.visit import Ticket, make_key

CAME_WITHIN_MS, REFRESH_MS = 600_000, 60_000
AT_ONCE = 2_000
SETTINGS_BYTES = 33

FILL = """
local function fill(keys, argv)
  open_ledger(keys[1], argv[1])
  for at = 1, #argv[2], 20 do
    local id, key = struct.unpack('<c12d', argv[2], at)
    join_line(id, key)
    expect(id, longest_refresh_ms())
  end
  dirty = true
  close_ledger(keys[1])
  return state.waiting
end
redis.register_function(LIBRARY .. '_fill', fill)
"""


def line_of(visitors: int, now_ms: int) -> list[tuple[bytes, int]]:
    """Ids and keys, in the order of arrival."""
    return [
        (
            os.urandom(12),
            make_key(now_ms - CAME_WITHIN_MS + CAME_WITHIN_MS * number // visitors, number % 4096),
        )
        for number in range(visitors)
    ]


def chunks(line: list[tuple[bytes, int]]) -> Iterator[list[tuple[bytes, int]]]:
    """Of AT_ONCE places."""
    return (line[start : start + AT_ONCE] for start in range(0, len(line), AT_ONCE))


def into_journal(data: Path, room: str, line: list[tuple[bytes, int]]) -> None:
    """No process may use the data directory."""
    path = data / "rooms" / f"{room}.journal"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    journal = FileJournal(path)
    journal.append(pack(NOTE, NOBODY, 0))
    for places in chunks(line):
        journal.append(b"".join(pack(PLACE, one, key) for one, key in places))
    journal.sync()
    journal.close()


def into_redis(port: int, line: list[tuple[bytes, int]]) -> None:
    """The ledger must be there; the places are expected a refresh and the grace from now."""
    client = redis.Redis(port=port)
    library = Library((*(part(name) for name in PARTS), FILL))
    client.function_load(library.source, replace=True)
    (state,) = client.scan_iter("greenroom:{*}:state", count=1_000)
    ledger = state.removesuffix(b":state")
    for places in chunks(line):
        packed = b"".join(struct.pack("<12sd", one, key) for one, key in places)
        client.fcall(library.function("fill").decode(), 1, ledger, bytes(SETTINGS_BYTES), packed)
    client.function_delete(library.name)
    client.close()


def fill(data: Path, room: str, visitors: int, redis_port: int | None) -> list[bytes]:
    """Puts so many on the books of the room of this name, and returns their tickets in no order."""
    now_ms = time.time_ns() // 1_000_000
    line, room = line_of(visitors, now_ms), room_id(room)
    sealer = Sealer(KeyRing(data, now_ms))
    last_ms = now_ms - REFRESH_MS
    tickets = [
        sealer.seal(Ticket(one, key, 0, last_ms, REFRESH_MS), room.encode()) for one, key in line
    ]
    random.Random(1).shuffle(tickets)
    if redis_port is None:
        into_journal(data, room, line)
    else:
        into_redis(redis_port, line)
    return tickets
