"""Answers that the gateway holds for visitors who try rarely: until there is a verdict, for a
while, while they are connected.
"""

from collections.abc import Callable

import pytest

from greenroom.decision.late_try import LateTry
from greenroom.decision.verdict import Forward, Verdict
from greenroom.gateway.visitor import long_poll
from greenroom.model.visit import Arrival, Outcome, Standing, Ticket

WAITING, ADMITTED = Outcome(Standing.WAITING), Outcome(Standing.ADMITTED)
TICKET = Ticket(bytes(16), 1, 0, 0, 2_000)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Trying:
    """A ledger and the answers of a late try by a script: the visitor is admitted by the try of this
    number; 0: never.
    """

    def __init__(self, page: Verdict, verdict_at: int = 0) -> None:
        self.page, self.verdict_at = page, verdict_at
        self.tries = self.given_up = 0
        self.held_ms = 200

    def poll(self, _id: bytes, _key: int, then: Callable[[Outcome], None]) -> None:
        self.tries += 1
        then(ADMITTED if self.tries == self.verdict_at else WAITING)

    def page_of(self, _: Outcome, __: int) -> Verdict:
        self.given_up += 1
        return self.page

    def made(self) -> LateTry:
        forward = lambda _, done: done(Forward())  # noqa: E731
        return LateTry(self, TICKET, 0, WAITING, forward, self.page_of, self.held_ms)  # type: ignore[arg-type]


@pytest.fixture
def late(rig, monkeypatch: pytest.MonkeyPatch) -> list[Trying]:
    """Every request is a late try: the first of these."""
    monkeypatch.setattr(long_poll, "AGAIN_MS", 20)
    prepared: list[Trying] = []

    def verdict(
        arrival: Arrival, later: Callable[[Verdict], None], hold: Callable[[LateTry], bool]
    ) -> Verdict | None:
        trying = prepared[0].made()
        return None if hold(trying) else trying.give_up()

    monkeypatch.setattr(rig.decisions, "verdict", verdict)
    return prepared


async def test_a_visitor_is_let_in_by_a_later_try(rig, late, monkeypatch) -> None:
    late.append(Trying(rig.PAGE, 3))
    late[0].held_ms = 60_000
    async with rig.running(), rig.visitor() as talk:
        assert (await talk.get()).status == 200
        await rig.until(lambda: not rig.gateway.state.long_polls, "the try is over")
    assert late[0].tries == 3


async def test_a_visitor_for_whom_no_permit_comes_is_told_to_wait(rig, late) -> None:
    late.append(Trying(rig.PAGE))
    async with rig.running(), rig.visitor() as talk:
        assert (await talk.get()).body == rig.PAGE.body
    assert late[0].tries <= 200 // 20  # a busy process comes to fewer
    assert late[0].given_up == 1


async def test_no_try_is_made_for_a_visitor_who_has_gone(rig, late, monkeypatch) -> None:
    late.append(Trying(rig.PAGE))
    late[0].held_ms = 60_000
    async with rig.running():
        async with rig.visitor() as talk:
            talk.send(GET)
            await rig.until(lambda: late[0].tries > 1, "the answer is held")
        await rig.until(lambda: late[0].given_up == 1, "the connection is closed")


async def test_more_than_may_be_held_are_answered_at_once_and_so_is_everybody_while_draining(
    rig, late, monkeypatch
) -> None:
    monkeypatch.setattr(long_poll, "HELD_MOST", 1)
    late.append(Trying(rig.PAGE))
    late[0].held_ms = 60_000
    async with rig.running(), rig.visitor() as talk, rig.visitor() as second:
        talk.send(GET)
        await rig.until(lambda: late[0].tries > 1, "the answer is held")
        assert (await second.get()).body == rig.PAGE.body
        rig.gateway.state.keeps = False
        assert (await talk.response("GET")).body == rig.PAGE.body


async def test_an_answer_that_is_held_longer_than_a_decision_may_take_is_not_cut(
    rig, late, monkeypatch
) -> None:
    late.append(Trying(rig.PAGE))
    late[0].held_ms = 1_600
    async with rig.running(decision_s=1), rig.visitor() as talk:
        assert (await talk.get()).body == rig.PAGE.body
