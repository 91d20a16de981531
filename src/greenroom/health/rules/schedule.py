"""When an agent probes a check. Each pair of agent and check has its own place in the interval, the
same after a restart; jitter keeps origins from falling into step with their own timers.
"""

import hashlib

JITTER = 20
"""1/20 of the interval: half before, half after."""

JITTER_MAX_MS = 2_000


def phase_ms(check_id: str, agent: str, interval_ms: int) -> int:
    return _number(f"{check_id}/{agent}") % interval_ms


def next_due_ms(check_id: str, agent: str, interval_ms: int, after_ms: int) -> int:
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
