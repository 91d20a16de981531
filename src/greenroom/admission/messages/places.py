"""A move to another device where several data centers serve the room: two-phase commit.

A place in line changes data center without any message, by its key alone. So before the new ticket is
given out, every data center has to bar the old id:

    where it was pressed             coordinator                      every other data center
        -- ask (old, new) -->                     -- ask -->
        <-- said (the highest) --                 <-- said --              bars the old id
        -- commit or cancel -->                   -- commit or cancel -->  gives the session
        <-- said: done --                         <-- said: done --        or lifts the bar

Messages are repeated until answered; the coordinator relays the newest reports and stores nothing.
Unless all answer, the move is cancelled and the place stays with the old device. A data center that
begins a new epoch gets no permit before all others have reported what has moved.
"""

import msgspec

ASK, CANCEL, COMMIT = range(3)

FREE, PLACE, SPENT, SESSION, BUSY, DONE = range(6)
"""An id is: unknown; in line; over, moved or given away; inside, or its turn is kept; in another move.
The highest answer of all data centers counts. DONE answers CANCEL and COMMIT.
"""


class PlacesUp(msgspec.Struct, frozen=True, array_like=True):
    asks: tuple[tuple[bytes, bytes, int, int], ...] = ()  # (old, new, serial, phase)
    said: tuple[tuple[bytes, str, int, int, int], ...] = ()  # (old, source, serial, phase, answer)
    told: int = 0  # `tell` of the last answer
    moved: tuple[tuple[bytes, bytes, str, int], ...] = ()  # (old, new, source or here, serial)


class PlacesDown(msgspec.Struct, frozen=True, array_like=True):
    asks: tuple[tuple[bytes, bytes, str, int, int], ...] = ()  # (old, new, source, serial, phase)
    said: tuple[tuple[bytes, int, int, int], ...] = ()  # (old, serial, phase, the highest answer)
    tell: int = 0  # not 0: report what has moved
    learners: tuple[str, ...] = ()  # to these, with what they may have moved and forgotten
    moved: tuple[tuple[bytes, bytes, str, int], ...] = ()  # (old, new, source or here, serial)
