"""Long polls of visitors who try rarely and are due soon (`decision.late_try`)."""

from collections.abc import Callable

from greenroom.admission.ledger.keeping import AGAIN_MS
from greenroom.decision.late_try import LateTry
from greenroom.decision.verdict import Verdict
from greenroom.gateway.visitor.stream import VisitorStream

HELD_MOST: int = 1_000
"""Per gateway; each costs about 2 KB and a ledger request per second. Others are answered at once.
"""


class LongPoll:
    __slots__ = ("_broken", "_decided", "_trying", "_until_s", "_waits", "visitor")

    def __init__(
        self,
        visitor: VisitorStream,
        trying: LateTry,
        waits: Callable[[], bool],
        decided: Callable[[Verdict], None],
        broken: Callable[[BaseException], None],
    ) -> None:
        """`waits`: the visitor is connected and has no verdict."""
        self.visitor, self._trying = visitor, trying
        self._waits, self._decided, self._broken = waits, decided, broken
        self._until_s = visitor.gateway.loop.time() + trying.held_ms / 1000

    def wait(self) -> None:
        self.visitor.expect(self.visitor.limits.decision_s)
        loop = self.visitor.gateway.loop
        # timers count milliseconds: a shorter one is called at once, and again until the time is over
        delay_s = max(0.001, min(AGAIN_MS / 1000, self._until_s - loop.time()))
        loop.call_later(delay_s, self._again)

    def _again(self) -> None:
        """Called every second, more rarely when the process is busy."""
        gateway = self.visitor.gateway
        try:
            if (
                self._waits()
                and not self.visitor.half_closed  # or nearly always gone
                and gateway.keeps
                and gateway.loop.time() < self._until_s
            ):
                self._trying.again(self._decided)
                self.wait()
                return
            verdict = self._trying.give_up()
        except Exception as error:
            gateway.long_polls -= 1
            self._broken(error)
            return
        gateway.long_polls -= 1
        if verdict is not None:
            self._decided(verdict)


def hold(poll: LongPoll) -> bool:
    """False: answer at once."""
    gateway = poll.visitor.gateway
    if gateway.long_polls >= HELD_MOST or not gateway.keeps:
        return False
    gateway.long_polls += 1
    poll.wait()
    return True
