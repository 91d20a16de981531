"""When an agent probes a check: spread over the interval, with jitter, and the same again after a
restart.

Each pair of agent and check has a phase of its own, so ten thousand checks that were made in one
minute are not probed in one second, and the agents of a region do not knock all at once. Every
probe is moved a little (JITTER) around its place, so that origins with checks of the same interval
do not fall into step with their own timers. The places themselves never drift.
"""

import hashlib

JITTER = 20
"""A probe is moved by at most a twentieth of the interval, half of it each way."""

JITTER_MAX_MS = 2_000


def phase_ms(check_id: str, agent: str, interval_ms: int) -> int:
    """Where in the interval this agent probes this check."""
    return _number(f"{check_id}/{agent}") % interval_ms


def next_due_ms(check_id: str, agent: str, interval_ms: int, after_ms: int) -> int:
    """The first moment of a probe after `after_ms`."""
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
