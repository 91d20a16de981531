"""What a ticket that is over may bring to a visitor whose session lives in another data center; and
builds that give more.
"""

from collections.abc import Callable
from typing import Any

import pytest
from broken_builds import Break, Broken, Trial, around, found_by, must_be_found
from mover_trials import tickets_that_are_over

from greenroom.admission.ledger import visiting
from greenroom.admission.ledger.ledger import Ledger
from greenroom.model.visit import Outcome, Standing

pytestmark = pytest.mark.slow


def test_the_trial_is_passed() -> None:
    assert tickets_that_are_over() == []


BROKEN: Broken = []


def broken(build: Break) -> Break:
    return found_by(tickets_that_are_over, BROKEN)(build)


def searching(instead: Callable[[Outcome | None, Ledger, bytes, int], Outcome | None]) -> Break:
    """A build that answers with `instead` (None: as before) when a session is searched."""

    def build(patch: pytest.MonkeyPatch) -> None:
        original = visiting._search

        def search(ledger: Any, ticket_id: bytes, served_ms: int, now_ms: int) -> Outcome | None:
            outcome = original(ledger, ticket_id, served_ms, now_ms)
            return instead(outcome, ledger, ticket_id, now_ms) or outcome

        patch.setattr(visiting, "_search", search)

    return build


@broken
def serves_it_on_trust(patch: pytest.MonkeyPatch) -> None:
    searching(lambda _, ledger, one, now_ms: Outcome(Standing.ACTIVE, now_ms + 1, now_ms))(patch)


@broken
def spends_a_permit_on_it(patch: pytest.MonkeyPatch) -> None:
    searching(lambda _, ledger, one, now_ms: ledger.admit_mover(one, now_ms))(patch)


@broken
def gives_it_a_place_when_no_session_is_found(patch: pytest.MonkeyPatch) -> None:
    searching(
        lambda outcome, ledger, one, now_ms: (
            None if outcome and outcome.searching else ledger.poll(one, 0, now_ms, 0)
        )
    )(patch)


@broken
def forgets_that_an_operator_ended_all_sessions(patch: pytest.MonkeyPatch) -> None:
    def configure(original: Any, self: Ledger, room: Any, now_ms: int) -> None:
        original(self, room, now_ms)
        self.all_ended_ms = 0

    around(patch, Ledger, "configure", configure)


@broken
def finds_no_session(patch: pytest.MonkeyPatch) -> None:
    searching(lambda _, ledger, one, now_ms: Outcome(Standing.GONE))(patch)


@pytest.mark.needs("patching")
@pytest.mark.parametrize(
    ("trial", "build"), BROKEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_build_is_found_that(trial: Trial, build: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(trial, build, monkeypatch)
