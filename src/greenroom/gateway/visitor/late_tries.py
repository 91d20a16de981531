"""Answers that are held: visitors who try rarely and are due soon (`decision.late_try`)."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from greenroom.admission.ledger.keeping import AGAIN_MS
from greenroom.decision.verdict import Verdict

HELD_MOST: int = 1_000
"""Answers held at once, about 2 KB each and one question to the ledger a second; visitors beyond
that are answered at once.
"""


class Trying(Protocol):
    """One late request (`decision.late_try.LateTry`)."""

    held_ms: int

    def again(self, done: Callable[[Verdict], None]) -> None:
        """One more try; calls `done` only when the visitor need not wait any more."""

    def give_up(self) -> Verdict | None:
        """The answer: wait on; None when there is a verdict already."""


class Connected(Protocol):
    """A visitor's connection."""

    @property
    def half_closed(self) -> bool:
        """Whether the visitor sends no more, and has nearly always gone."""

    def expect_decision(self) -> None:
        """There is an answer for this request a little later."""


class HeldExchange(Protocol):
    """The exchange whose answer is held."""

    @property
    def verdict(self) -> Verdict | None:
        """None until it is decided."""

    @property
    def visitor(self) -> object | None:
        """None once the visitor has gone."""

    def decided(self, verdict: Verdict) -> None:
        """The verdict."""

    def broken(self, error: BaseException) -> None:
        """An exception: it is told, and the visitor is held."""


class LateTries:
    """All of one gateway."""

    __slots__ = ("_held", "_loop", "draining")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._held = 0
        self.draining = False
        """Answers are not held any more."""

    def hold(self, exchange: HeldExchange, connection: Connected, trying: Trying) -> bool:
        """Holds the answer to this request and tries again; False when it should be answered at
        once.
        """
        if self._held >= HELD_MOST or self.draining:
            return False
        self._held += 1
        self._later(exchange, connection, trying, self._loop.time() + trying.held_ms / 1000)
        return True

    def _later(
        self, exchange: HeldExchange, connection: Connected, trying: Trying, until_s: float
    ) -> None:
        connection.expect_decision()
        # timers count milliseconds: a shorter one is called at once, and again until the time is over
        delay_s = max(0.001, min(AGAIN_MS / 1000, until_s - self._loop.time()))
        self._loop.call_later(delay_s, self._again, exchange, connection, trying, until_s)

    def _again(
        self, exchange: HeldExchange, connection: Connected, trying: Trying, until_s: float
    ) -> None:
        """A second has passed, or several where the process is busy."""
        try:
            gone = exchange.visitor is None or connection.half_closed
            if (
                gone
                or exchange.verdict is not None
                or self.draining
                or self._loop.time() >= until_s
            ):
                self._held -= 1
                verdict = trying.give_up()
                if verdict is not None:
                    exchange.decided(verdict)
                return
            trying.again(exchange.decided)
            self._later(exchange, connection, trying, until_s)
        except Exception as error:
            self._held -= 1
            exchange.broken(error)
