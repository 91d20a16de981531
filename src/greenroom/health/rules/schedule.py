"""When an agent probes a check: spread over the interval, with jitter, the same after a restart.

Each pair of agent and check has its own phase, so checks made together are not probed together, and
the agents of a region do not probe all at once. Jitter around that place keeps origins from falling
into step with their own timers. The places never drift.
"""

import hashlib

JITTER = 20
"""A probe moves by at most 1/20 of the interval, half of it each way."""

JITTER_MAX_MS = 2_000


def phase_ms(check_id: str, agent: str, interval_ms: int) -> int:
    """The agent's offset in the interval of this check."""
    return _number(f"{check_id}/{agent}") % interval_ms


def next_due_ms(check_id: str, agent: str, interval_ms: int, after_ms: int) -> int:
    """The first probe after `after_ms`."""
    phase, width = phase_ms(check_id, agent, interval_ms), min(interval_ms // JITTER, JITTER_MAX_MS)
    number = (after_ms - phase) // interval_ms
    while True:
        due = (
            number * interval_ms
            + phase
            + (_number(f"{check_id}/{agent}/{number}") % (width + 1) - width // 2)
        )
        if due > after_ms:
            return due
        number += 1


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
