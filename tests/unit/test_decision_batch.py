"""Requests of one turn of the event loop are decided together, each once and in the order in which
they came.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from greenroom.decision.verdict import Forward, Verdict
from greenroom.gateway.visitor.decision_batch import SIZE, DecisionBatch
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.request.forwarded import ForwardedPolicy

PEER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())

pytestmark = pytest.mark.needs("patching")  # compiled code checks the types of arguments


class Site:
    """A batch, what is put off to the end of the turn, and what happened."""

    def __init__(self) -> None:
        self.put_off: list[Callable[[], None]] = []
        self.happened: list[tuple[str, Any]] = []
        self.verdicts: dict[Any, Verdict | Exception | None] = {}
        self.batch = DecisionBatch(self.ask, self.put_off.append)
        self.on_decided: Callable[[Any], None] = lambda _: None

    def ask(self, arrival: Any, decided: Any, late: Any) -> Verdict | None:
        name = arrival.path[1:]
        self.happened.append(("asked", name))
        verdict = self.verdicts.get(name, Forward())
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    def request(self, name: str) -> Any:
        def decided(_: Verdict) -> None:
            self.happened.append(("decided", name))
            self.on_decided(name)

        return SimpleNamespace(
            head=read_head(b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % name.encode(), PEER),
            decided=decided,
            late=lambda _: False,
            broken=lambda error: self.happened.append(("broken", name)),
            wait_for_verdict=lambda: self.happened.append(("waits", name)),
        )

    def turn(self) -> None:
        """The end of a turn."""
        ready, self.put_off[:] = list(self.put_off), []
        for callback in ready:
            callback()


@pytest.fixture
def site() -> Site:
    return Site()


def test_nothing_is_asked_before_all_are_read_nor_answered_before_all_are_asked(site: Site) -> None:
    for name in "abc":
        site.batch.add(site.request(name))
    assert site.happened == []
    assert len(site.put_off) == 1
    site.turn()
    assert site.happened == [(step, name) for step in ("asked", "decided") for name in "abc"]
    site.turn()
    assert len(site.happened) == 6, "each once"


def test_the_order_holds_beyond_the_size_of_a_batch(site: Site) -> None:
    for name in range(2 * SIZE + 3):
        site.batch.add(site.request(str(name)))
    site.turn()
    for step in ("asked", "decided"):
        assert [name for what, name in site.happened if what == step] == [
            str(name) for name in range(2 * SIZE + 3)
        ]


def test_what_comes_while_others_are_answered_waits_for_the_next_turn(site: Site) -> None:
    site.on_decided = lambda name: site.batch.add(site.request("next")) if name == "first" else None
    site.batch.add(site.request("first"))
    site.turn()
    assert ("asked", "next") not in site.happened
    site.turn()
    assert site.happened[-1] == ("decided", "next")


def test_an_exception_holds_its_own_visitor_and_not_the_others(site: Site) -> None:
    site.verdicts = {"b": ValueError(), "c": None}
    for name in "abcd":
        site.batch.add(site.request(name))
    site.turn()
    assert ("broken", "b") in site.happened
    assert [name for what, name in site.happened if what == "decided"] == ["a", "d"]
    assert ("waits", "c") in site.happened


def test_deciding_early_leaves_nothing_for_the_end_of_the_turn(site: Site) -> None:
    site.batch.add(site.request("a"))
    site.batch.decide()
    site.turn()
    assert site.happened == [("asked", "a"), ("decided", "a")]
