"""When a visitor refreshes: soon if called, else sooner near the front, and never a crowd at once."""

from greenroom.model.visit import Estimate

CALLED_REFRESH_MS = 2_000

SHOW_REFRESH_MS = 750
"""Pages count in whole seconds: one."""

FIRST_REFRESH_MS = 20_000
"""Visitors who never come back are noticed soon, however long the room's interval."""


def soon(random_bits: int, value_ms: int = CALLED_REFRESH_MS) -> int:
    return spread(value_ms, 25, random_bits)


def later(longest_ms: int, random_bits: int) -> int:
    return spread(longest_ms, 10, random_bits)


def by_rank(rank: int, estimate: Estimate | None, longest_ms: int, random_bits: int) -> int:
    """A third of the wait, at most `longest_ms`. The first few try often however slow the line: if
    the first is a ghost, the next is there.
    """
    wait_ms = CALLED_REFRESH_MS * (rank + 1)
    if wait_ms > longest_ms:
        wait_ms = longest_ms
    if estimate:
        third_ms = int(estimate.p50_s * 333)
        if third_ms < wait_ms:
            wait_ms = third_ms
        if wait_ms < CALLED_REFRESH_MS:
            wait_ms = CALLED_REFRESH_MS
    return spread(wait_ms, 10, random_bits)


def spread(value_ms: int, percent: int, random_bits: int) -> int:
    """Keeps a crowd from coming back in step."""
    return value_ms + value_ms * percent * ((random_bits & 0xFFFF) - 0x8000) // (100 << 15)
