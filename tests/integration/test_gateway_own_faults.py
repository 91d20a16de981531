"""When greenroom itself fails: the visitor is held, keeps the place, and never gets half an answer."""

import pytest

from greenroom.decision.verdict import Forward
from greenroom.gateway.visitor.decision_batch import DecisionBatch


def keep_ticket(rig) -> None:
    rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET)


def the_place_is_kept(rig, response) -> bool:
    return response.all("Set-Cookie") == [rig.TICKET.decode()] and "no-store" in response.header(
        "Cache-Control"
    )


class Broken(Exception):
    """Something that was not foreseen."""


async def test_an_exception_in_the_reception_holds_the_visitor(rig) -> None:
    def decide(_arrival):
        raise Broken

    rig.decisions.decide = decide
    async with rig.running():
        response = await rig.get()
        assert (response.status, response.header("Refresh")) == (503, "10")
        assert [type(error) for error in rig.errors] == [Broken]
        assert rig.counts.errors == 1
        rig.errors.clear()
    assert rig.requests == []


@pytest.mark.parametrize("reply", [(), "forward", 200])
async def test_a_reply_that_is_neither_holds_the_visitor(rig, reply) -> None:
    rig.decisions.decide = lambda _: reply
    async with rig.running():
        assert (await rig.get()).status == 503
        assert len(rig.errors) == 1
        rig.errors.clear()
    assert rig.requests == []


async def test_an_exception_on_the_way_to_the_origin_holds_the_visitor_and_keeps_the_place(
    rig,
) -> None:
    def origins(_host):
        raise Broken

    keep_ticket(rig)
    async with rig.running():
        rig.gateway.state.origins = origins
        response = await rig.get()
        assert response.status == 503
        assert the_place_is_kept(rig, response)
        assert [type(error) for error in rig.errors] == [Broken]
        rig.errors.clear()
    assert rig.requests == []


async def test_an_exception_while_answering_is_a_503_and_not_half_an_answer(rig) -> None:
    def obey(_forward, _command):
        raise Broken

    rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET, obeys_origin=True)
    rig.decisions.obey = obey
    rig.app = rig.says(
        b"HTTP/1.1 200 OK\r\nCf-Waiting-Room-Command: revoke\r\nContent-Length: 2\r\n\r\nok"
    )
    async with rig.running():
        response = await rig.get()
        assert (response.status, response.whole) == (503, True)
        assert len(rig.errors) == 1
        rig.errors.clear()


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_second_verdict_changes_nothing(rig, at_once: bool) -> None:
    def twice(arrival, later, late) -> Forward | None:
        later(rig.PAGE)
        later(Forward())
        return Forward() if at_once else None

    async with rig.running():
        rig.gateway.batch = DecisionBatch(twice, rig.gateway.state.later)
        assert (await rig.get()).body == rig.PAGE.body
    assert rig.requests == []


async def test_a_decision_that_never_comes_holds_the_visitor(rig) -> None:
    late = []
    async with rig.running(decision_s=1):
        rig.gateway.batch = DecisionBatch(
            lambda arrival, later, late_try: late.append(later), rig.gateway.state.later
        )
        assert (await rig.get()).status == 503
        late[0](Forward())
    assert rig.requests == []
