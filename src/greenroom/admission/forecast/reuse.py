"""How long a unit of capacity is idle between two sessions. By Little's law the mean age of permits
when their use is reported is the permits that are out divided by admissions per second: long where
visitors are few, short in a crowd. Reports are late by their own age.
"""

GRANTED_S = 0.15
"""Measured in simulated full rooms."""
PERMIT_S = 0.95
"""The prior, from simulated rooms of 1,500 to 2,000."""
WEIGHT = 20.0
FADE_MS = 45_000
LONGEST_S = 3.0
"""Permits of silent data centers stay out longer."""


class Reuse:
    __slots__ = ("_admissions", "_admitted", "_at_ms", "_permit_s")

    def __init__(self) -> None:
        self._permit_s = self._admissions = 0.0
        self._admitted = self._at_ms = 0

    @property
    def permit_s(self) -> float:
        return min(LONGEST_S, (self._permit_s + WEIGHT * PERMIT_S) / (self._admissions + WEIGHT))

    @property
    def idle_s(self) -> float:
        return GRANTED_S + self.permit_s

    def see(
        self, permits: int, admitted: int, now_ms: int, longest_ms: int, report_age_ms: int
    ) -> None:
        passed_ms = now_ms - self._at_ms
        if 0 < passed_ms <= longest_ms:
            fade, lately = 0.5 ** (passed_ms / FADE_MS), admitted - self._admitted
            out_ms = permits * passed_ms - lately * report_age_ms
            self._permit_s = max(0.0, self._permit_s * fade + out_ms / 1000)
            self._admissions = self._admissions * fade + lately
        self._at_ms, self._admitted = now_ms, admitted
