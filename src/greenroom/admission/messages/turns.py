"""Rows of visitors whom the origin failed (`ledger.failures`), between data centers.

A row follows its visitor, or one origin failure would keep a turn in each data center. It leaves
with the session; a kept turn goes to the data center that seeks it, where its visitor is; and a used
turn is reported everywhere, because a place in line moves without any message. The source repeats a
row until the receiver has confirmed it, and the coordinator relays the newest reports:

    new ledger                       coordinator                      old ledger
        -- seeks (id) -->                         -- sought (id, to) -->
        <-- row (id, source) --                   <-- row (id, to) --
        -- got (id, source) -->                   -- got (id, to) -->            forgets it

The coordinator stores nothing. A kept turn is in one data center at any moment: it leaves the ledger
when it is first reported, and only a new serial number brings it into another.
"""

import msgspec

EVERYWHERE = ""
"""All other data centers, as the receiver of a row."""

FailureRow = tuple[bytes, str, int, int, int, int]
"""Id, receiver or source, serial number at the source, age of the first failure in ms, seconds from
it to the newest one or to the end of the turn, state.
"""


class TurnsUp(msgspec.Struct, frozen=True, array_like=True):
    failing: bool = False  # turns may be kept here
    rows: tuple[FailureRow, ...] = ()
    got: tuple[tuple[bytes, str, int], ...] = ()  # (id, source, serial)
    # (id, time since it asked) of visitors here whose session is over
    seeks: tuple[tuple[bytes, int], ...] = ()


class TurnsDown(msgspec.Struct, frozen=True, array_like=True):
    elsewhere: bool = False  # turns may be kept in other data centers
    rows: tuple[FailureRow, ...] = ()
    got: tuple[tuple[bytes, str, int], ...] = ()  # (id, to, serial)
    sought: tuple[tuple[bytes, str, int], ...] = ()  # (id, to, time since it asked there)
