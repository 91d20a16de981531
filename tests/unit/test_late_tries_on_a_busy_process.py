"""A late visitor's answer is held for a time, not for a number of tries: those of a busy process
come late.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from greenroom.admission.ledger.keeping import AGAIN_MS, HELD_MS
from greenroom.decision.render import OUTAGE
from greenroom.gateway.visitor.long_poll import LongPoll, hold
from greenroom.model.answer import Answer
from greenroom.settings.limits import Limits

pytestmark = pytest.mark.needs("patching")  # compiled code checks the types of arguments


class SlowLoop:
    """An event loop that runs each callback so many seconds after its time."""

    def __init__(self, late_s: float) -> None:
        self.late_s, self.now_s = late_s, 0.0
        self.planned: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, seconds: float, then: Callable[..., None]) -> None:
        self.planned.append((self.now_s + seconds + self.late_s, then))

    def run(self) -> None:
        while self.planned:
            self.now_s, then = self.planned.pop()
            then()


class Held:
    """A visitor whose turn does not come: the connection and the tries."""

    half_closed, held_ms, limits = False, HELD_MS, Limits()

    def __init__(self, loop: SlowLoop) -> None:
        self.gateway = SimpleNamespace(loop=loop, keeps=True, long_polls=0)
        self.tries, self.answered_s = 0, 0.0

    def expect(self, _: float) -> None:
        pass

    def again(self, _: object) -> None:
        self.tries += 1

    def give_up(self) -> Answer:
        return OUTAGE

    def decided(self, _: object) -> None:
        self.answered_s = self.gateway.loop.now_s

    def broken(self, error: BaseException) -> None:
        raise error


@pytest.mark.parametrize("late_s", [0.0, 0.3, 1.0, 5.0])
def test_the_answer_comes_at_most_one_try_after_its_time(late_s: float) -> None:
    loop = SlowLoop(late_s)
    held: Any = Held(loop)
    assert hold(LongPoll(held, held, lambda: True, held.decided, held.broken))
    loop.run()
    between_s = AGAIN_MS / 1000 + late_s
    assert HELD_MS / 1000 <= held.answered_s < HELD_MS / 1000 + between_s
    assert held.tries >= HELD_MS / 1000 // between_s - 1
    assert held.gateway.long_polls == 0
