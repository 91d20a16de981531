"""How long a unit of capacity lies idle between two sessions: until its end is reported and a
permit granted, and until that is used.

Theory. By Little's law the mean age of permits when they are used is the permits that are out,
divided by the admissions per second. Both are in the reports. It is long where visitors come seldom
to each data center, and short in a crowd, where the next try is never far: half a second instead of
one and more, which for sessions of two minutes is one per cent of every wait.
"""

GRANTED_S = 0.15
"""Freed units are granted at the next report; measured in simulated full rooms as units in the pool
by admissions per second.
"""
PERMIT_S = 0.95
"""The prior, measured in simulated rooms of 1,500 to 2,000 with twenty data centers."""
WEIGHT = 20.0
"""The prior counts like this many admissions."""
FADE_MS = 45_000
"""Observations count half after this time."""
LONGEST_S = 3.0
"""Longest use of permits in seconds: those of a silent data center, or one without visitors, stay
out longer and say nothing.
"""


class Reuse:
    """Permits and admissions of the last minutes."""

    __slots__ = ("_admissions", "_admitted", "_at_ms", "_permit_s")

    def __init__(self) -> None:
        self._permit_s = self._admissions = 0.0
        self._admitted = self._at_ms = 0

    @property
    def idle_s(self) -> float:
        """Mean seconds from the end of a session to the next admission."""
        return GRANTED_S + min(
            LONGEST_S, (self._permit_s + WEIGHT * PERMIT_S) / (self._admissions + WEIGHT)
        )

    def see(self, permits: int, admitted: int, now_ms: int, longest_ms: int) -> None:
        """Notes permits that are out and all admissions so far; intervals above `longest_ms` are
        left out.
        """
        passed_ms = now_ms - self._at_ms
        if 0 < passed_ms <= longest_ms:
            fade = 0.5 ** (passed_ms / FADE_MS)
            self._permit_s = self._permit_s * fade + permits * passed_ms / 1000
            self._admissions = self._admissions * fade + admitted - self._admitted
        self._at_ms, self._admitted = now_ms, admitted
