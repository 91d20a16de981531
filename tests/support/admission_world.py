"""What admission is tested in: a clock set by hand, a journal that can fail, rooms and tickets made
short.
"""

from collections.abc import Callable
from random import Random

from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.model.visit import Outcome

START_MS = 1_750_000_000_000


class HandClock:
    """Time passes when it is told to."""

    def __init__(self, ms: int = START_MS) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms


class FlakyJournal:
    """A journal in memory; while `failing` it refuses, having written nothing."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.failing = False

    def append(self, records: bytes) -> None:
        if self.failing:
            raise StorageFailed("the disk is full")
        self.payloads.append(records)


def small_room(**changes: object) -> Room:
    """Five inside, six a minute, sessions of a minute; newcomers are let in at once, so that tests
    need no tickets to fill it.
    """
    values = {
        "id": "r",
        "name": "r",
        "host": "*",
        "total_active_users": 5,
        "new_users_per_minute": 6,
        "session_duration": 1,
        "confirm_newcomers": False,
    }
    return Room(**{**values, **changes})  # type: ignore[arg-type]


def ticket_id(number: int) -> bytes:
    return number.to_bytes(12, "big")


def answer_of(operation: Callable[..., None], *arguments: object) -> Outcome:
    """The outcome of a ledger operation that answers at once; exactly one answer."""
    answers: list[Outcome] = []
    operation(*arguments, answers.append)
    (outcome,) = answers
    return outcome


def bits(seed: int) -> Callable[[int], int]:
    """A source of random bits that always begins the same."""
    return Random(seed).getrandbits
