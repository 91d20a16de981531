"""The last answer is out, and the visitor may still be sending: what comes is read and discarded,
so that the answer arrives.

Closing a socket with unread input resets the connection, and the reset destroys the answer on its
way. A browser that uploads 7 MB into a full room reads the answer only when it has sent everything,
so discarding goes on while something comes: as long and as much as here.
"""

from greenroom.settings.limits import Limits

LINGER_MOST_S = 60
"""Longest time that an upload is discarded: 16 MiB at 2 Mbit/s."""


class Lingering:
    """How much longer one connection is kept for its last answer. Times are those of the event
    loop.
    """

    __slots__ = ("_left", "_silence_s", "_until")

    def __init__(self, limits: Limits, now: float) -> None:
        self._left = limits.linger_bytes
        self._silence_s = limits.linger_s
        self._until = now + LINGER_MOST_S

    def deadline(self, received: int, now: float) -> float:
        """So many more bytes came and were discarded: when the connection ends unless more comes."""
        self._left -= received
        return min(self._until, now + self._silence_s) if self._left > 0 else now
