"""A move to another device where several data centers serve the room: two-phase commit.

A place in line goes from one data center to another without a word, by its key alone. So before the
new ticket is given out, every data center has to bar the old id:

    where it was pressed             coordinator                      every other data center
        -- ask (old, new) -->                     -- ask -->
        <-- said (the highest) --                 <-- said --              bars the old id
        -- commit or cancel -->                   -- commit or cancel -->  gives the session
        <-- said: done --                         <-- said: done --        or lifts the bar

All repeat themselves until they are answered; the coordinator relays the newest reports and stores
nothing. Without an answer of all, the move is cancelled and the place stays with the old device.
A data center that begins a new epoch gets no permit before all others have named what has moved.
"""

import msgspec

ASK, CANCEL, COMMIT = range(3)

FREE, PLACE, SPENT, SESSION, BUSY, DONE = range(6)
"""What is known of an id: nothing; in line; its session is over, moved or given away; inside, or its
turn is kept; in another move. The highest of all data centers counts. DONE answers CANCEL and COMMIT.
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
    learners: tuple[str, ...] = ()  # to these; and what they may have moved before they forgot it
    moved: tuple[tuple[bytes, bytes, str, int], ...] = ()  # (old, new, source or here, serial)
