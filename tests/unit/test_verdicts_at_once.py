"""A ledger in this process answers at once, one elsewhere later: the decision service says the same
of both.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from admission_world import small_room
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from visitors import Browser, Site

from greenroom.decision.render import OUTAGE, render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.ledgers.memory import MemoryLedger
from greenroom.ledgers.port import PromptLedger
from greenroom.model.record import replace
from greenroom.model.visit import Outcome


class LedgerElsewhere:
    """The same ledger through `then` alone; what it has to say waits until `answer` is called."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self.ledger = ledger
        self.waiting: list[Callable[[], None]] = []

    def _ask(self, operation: str, *question: Any) -> None:
        *facts, then = question
        found: list[Outcome] = []
        getattr(self.ledger, operation)(*facts, found.append)
        self.waiting.append(lambda: then(found[0]))

    def answer(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def __getattr__(self, operation: str) -> Any:
        if operation in ("arrive", "poll", "peek", "view", "arrive_provisionally"):
            return lambda *question: self._ask(operation, *question)
        if operation.endswith("_now"):
            raise AttributeError(operation)
        return getattr(self.ledger, operation)


def sites(folder: Path) -> tuple[Site, Site, LedgerElsewhere]:
    """Two that are alike, but for where the ledger is."""
    for name in ("here", "elsewhere"):
        (folder / name).mkdir()
    here, elsewhere = (
        Site(folder / name, small_room(total_active_users=2, new_users_per_minute=2))
        for name in ("here", "elsewhere")
    )
    ledger = LedgerElsewhere(elsewhere.ledgers["r"])
    elsewhere.ledgers["r"] = ledger  # type: ignore[assignment]
    for site in (here, elsewhere):
        site.settle()
    assert not isinstance(ledger, PromptLedger)
    assert isinstance(here.ledgers["r"], PromptLedger)
    return here, elsewhere, ledger


def at_once(browser: Browser, query: str) -> Verdict | None:
    """The verdict, which must not be told a second time."""
    later: list[Verdict] = []
    verdict = browser.site.decisions.verdict(
        browser.arrival(query=query, method="POST" if query else "GET"), later.append
    )
    assert not later
    return verdict


def seen(verdict: Verdict, browser: Browser) -> Any:
    """What of it does not hang on nonces, and the cookie is kept."""
    answer = render(verdict, browser.arrival()) if isinstance(verdict, Hold) else verdict
    browser.keep(answer)
    if isinstance(verdict, Hold):
        return verdict.held
    if isinstance(verdict, Forward):
        return replace(verdict, set_cookie=verdict.set_cookie[:1], page=None)
    return replace(verdict, set_cookie=verdict.set_cookie[:1])


steps = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(["", "", "", "greenroom=leave"]), st.integers(0, 40_000)
    ),
    max_size=25,
)


@settings(max_examples=examples(60))
@given(steps)
def test_verdicts_and_events_are_the_same_whether_the_ledger_answers_at_once_or_later(
    story: list[tuple[int, str, int]],
) -> None:
    with TemporaryDirectory() as folder:
        here, elsewhere, ledger = sites(Path(folder))
        mine = [Browser(here) for _ in range(5)]
        others = [Browser(elsewhere) for _ in range(5)]
        for number, query, later_ms in story:
            verdict = at_once(mine[number], query)
            assert verdict is not None
            told: list[Verdict] = []
            other = elsewhere.decisions.verdict(
                others[number].arrival(query=query, method="POST" if query else "GET"), told.append
            )
            ledger.answer()
            (given_later,) = told if other is None else [*told, other]
            assert seen(verdict, mine[number]) == seen(given_later, others[number])
            for site in (here, elsewhere):
                site.advance(later_ms)
        assert [(event.decided, event.outcome) for event in here.events_seen] == [
            (event.decided, event.outcome) for event in elsewhere.events_seen
        ]
        assert here.errors == elsewhere.errors == []


@pytest.mark.parametrize("operation", ["arrive_now", "view_now"])
def test_a_ledger_that_fails_at_once_holds_the_visitor(tmp_path: Path, operation: str) -> None:
    here, _, _ = sites(tmp_path)
    browser = Browser(here)
    if operation == "view_now":
        browser.visit()

    def fails(*_: object) -> Outcome:
        raise RuntimeError("broken on purpose")

    here.change_ledger(operation, fails)
    assert at_once(browser, "") is OUTAGE
    assert [str(error) for error in here.errors] == ["broken on purpose"]
