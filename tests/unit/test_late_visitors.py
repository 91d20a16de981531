"""Visitors who try rarely: in front of the line, but seldom there when a permit comes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from admission_world import START_MS, small_room, ticket_id
from visitors import NAVIGATES, Browser, Site, header

from greenroom.admission.ledger.keeping import AGAIN_MS, GAP_MAX_MS, HELD_MS
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.decision.late_try import LateTry
from greenroom.decision.observer import Decided
from greenroom.decision.render import render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.model.answer import Answer
from greenroom.model.visit import Estimate, Outcome, Standing, make_key

GAP_MS = 60_000
PAGE_UPDATES = (
    (b"greenroom-update", b"1"),
    (b"accept", b"application/json"),
    (b"sec-fetch-dest", b"empty"),
)
APP = ((b"accept", b"application/json"), (b"user-agent", b"okhttp/4.12"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One inside; the session of the first visitor never ends by itself while it browses."""
    return Site(
        tmp_path, small_room(total_active_users=1, new_users_per_minute=60, session_duration=5)
    )


def waits(browser: Browser) -> bool:
    return isinstance(browser.visit(), Answer)


def in_front(site: Site) -> tuple[Browser, Browser]:
    """A visitor inside, and one in front of the line whose phone sleeps from now on."""
    inside, sleeper = Browser(site), Browser(site)
    assert isinstance(inside.visit(), Forward)
    for _ in range(2):
        assert waits(sleeper)
        sleeper.wait()
    return inside, sleeper


def comes_late(
    browser: Browser,
    done: Callable[[Verdict], None],
    held: bool = True,
    headers: tuple[tuple[bytes, bytes], ...] = PAGE_UPDATES,
) -> LateTry | None:
    """A request whose answer may be held."""
    tries: list[LateTry] = []

    def late(trying: LateTry) -> bool:
        if held:
            tries.append(trying)
        return held

    verdict = browser.site.decisions.verdict(browser.arrival(headers=headers), done, late)
    if verdict is not None:
        done(verdict)
    return tries[0] if tries else None


def test_the_answer_to_a_late_visitor_in_front_is_held_until_a_permit_comes(site: Site) -> None:
    _, sleeper = in_front(site)
    site.advance(GAP_MS)
    verdicts: list[Verdict] = []
    trying = comes_late(sleeper, verdicts.append, headers=(*APP, (b"prefer", b"wait=15")))
    assert trying is not None
    trying.again(verdicts.append)
    assert verdicts == []
    site.ledgers["r"].leave(ticket_inside(site))
    site.advance(1_000)
    trying.again(verdicts.append)
    assert isinstance(verdicts[0], Forward)
    assert trying.give_up() is None
    assert [event.decided for event in site.events_seen].count(Decided.ADMITTED) == 2
    assert site.errors == []


def ticket_inside(site: Site) -> bytes:
    (one,) = site.ledgers["r"].ledger.sessions.inside
    return one


def gives_up(sleeper: Browser) -> None:
    """A late try in vain, and what the visitor is told."""
    verdicts: list[Verdict] = []
    trying = comes_late(sleeper, verdicts.append)
    assert trying is not None
    for _ in range(HELD_MS // AGAIN_MS):
        sleeper.site.advance(AGAIN_MS)
        trying.again(verdicts.append)
    verdict = trying.give_up()
    assert isinstance(verdict, Hold)
    assert verdicts == []
    sleeper.keep(render(verdict, sleeper.arrival()))


def test_after_a_late_try_in_vain_the_next_permit_is_kept_until_the_next_try(site: Site) -> None:
    _, sleeper = in_front(site)
    prompt = Browser(site)
    assert waits(prompt)
    site.advance(GAP_MS)
    gives_up(sleeper)
    site.ledgers["r"].leave(ticket_inside(site))
    for _ in range(20):
        prompt.wait()
        assert waits(prompt), "the permit is for the visitor in front"
    site.advance(GAP_MS - 40_000)
    assert isinstance(sleeper.visit(), Forward)
    assert site.errors == []


def test_a_permit_is_kept_no_longer_than_the_gap_and_a_little(site: Site) -> None:
    _, sleeper = in_front(site)
    prompt = Browser(site)
    assert waits(prompt)
    site.advance(GAP_MS)
    gives_up(sleeper)
    kept_from_ms = site.clock.ms
    site.ledgers["r"].leave(ticket_inside(site))
    while waits(prompt):
        prompt.wait()
    kept_ms = site.clock.ms - kept_from_ms
    gap_ms = GAP_MS + 2 * 2_500  # the assigned refreshes too
    assert GAP_MS * 1.15 <= kept_ms <= gap_ms * 1.15 + 2 * GRACE_MS
    assert not waits(sleeper) or header(sleeper.visit(), b"Refresh"), "the place itself is not lost"  # type: ignore[arg-type]


def test_a_visitor_whose_connection_breaks_while_the_answer_is_held_keeps_place_and_permit(
    site: Site,
) -> None:
    _, sleeper = in_front(site)
    site.advance(GAP_MS)
    trying = comes_late(sleeper, lambda _: None)
    assert trying is not None
    site.advance(3_000)
    trying.give_up()  # the answer reaches no visitor, so the ticket is the old one
    site.ledgers["r"].leave(ticket_inside(site))
    site.advance(GAP_MS)
    assert isinstance(sleeper.visit(), Forward)


def test_who_cannot_be_held_is_answered_at_once_and_has_the_permit_kept(site: Site) -> None:
    _, sleeper = in_front(site)
    site.advance(GAP_MS)
    verdicts: list[Verdict] = []
    comes_late(sleeper, verdicts.append, held=False)
    assert isinstance(verdicts[0], Hold)
    assert site.ledgers["r"].ledger.line.kept is not None
    assert [event.decided for event in site.events_seen].count(Decided.HELD) == 3


@pytest.mark.parametrize(
    ("headers", "held_ms", "applied"),
    [
        (PAGE_UPDATES, HELD_MS, None),
        (APP, None, None),
        (NAVIGATES, None, None),
        ((*NAVIGATES, (b"prefer", b"wait=10")), None, None),
        ((*APP, (b"prefer", b"wait=10")), 9_750, b"wait=10"),
        ((*APP, (b"prefer", b"respond-async, Wait=1; x=y")), 750, b"wait=1"),
        ((*APP, (b"prefer", b"wait=600")), HELD_MS, b"wait=18"),
        ((*APP, (b"prefer", b"wait=0")), None, None),
        ((*APP, (b"prefer", b"wait=-1")), None, None),
        ((*APP, (b"prefer", b"await=9")), None, None),
        ((*APP, (b"prefer", b"wait=" + b"9" * 5_000)), None, None),
    ],
)
def test_an_answer_is_held_only_for_the_page_and_for_who_asks_and_no_longer_than_that(
    site: Site,
    headers: tuple[tuple[bytes, bytes], ...],
    held_ms: int | None,
    applied: bytes | None,
) -> None:
    _, sleeper = in_front(site)
    site.advance(GAP_MS)
    verdicts: list[Verdict] = []
    trying = comes_late(sleeper, verdicts.append, headers=headers)
    assert (None if trying is None else trying.held_ms) == held_ms
    verdict = verdicts[0] if trying is None else trying.give_up()
    assert isinstance(verdict, Hold)
    answer = render(verdict, sleeper.arrival(headers=headers))
    assert answer.headers.get(b"Preference-Applied") == applied
    assert site.ledgers["r"].ledger.line.kept is not None, "the permit is kept for all of them"


def test_who_is_prompt_or_not_in_front_is_answered_at_once(site: Site) -> None:
    _, sleeper = in_front(site)
    behind = Browser(site)
    assert waits(behind)
    behind.wait()
    assert waits(behind)
    verdicts: list[Verdict] = []
    assert comes_late(sleeper, verdicts.append) is None
    sleeper.wait()
    behind.wait()
    assert waits(sleeper)
    site.advance(20_000)
    assert waits(sleeper)
    assert comes_late(behind, verdicts.append) is None
    assert len(verdicts) == 2


@pytest.mark.parametrize(
    ("wait_s", "held_ms"), [(HELD_MS / 1_000, HELD_MS), (HELD_MS / 1_000 + 1, None), (None, None)]
)
def test_who_is_due_within_the_time_of_a_held_answer_is_held_too(
    site: Site, wait_s: float | None, held_ms: int | None
) -> None:
    _, sleeper = in_front(site)
    estimate = None if wait_s is None else Estimate(wait_s - 9, wait_s, wait_s + 9)
    outcome = Outcome(
        Standing.WAITING, 0, 0, site.clock.ms + GAP_MS, 9_000, 7, 6, 9, estimate, called=False
    )
    site.change_ledger("poll_now", lambda *_: outcome)
    site.advance(GAP_MS)
    verdicts: list[Verdict] = []
    trying = comes_late(sleeper, verdicts.append)
    assert (None if trying is None else trying.held_ms) == held_ms
    verdict = verdicts[0] if trying is None else trying.give_up()
    assert isinstance(verdict, Hold)
    assert site.ledgers["r"].ledger.line.kept is None, "a permit is kept for who is called"
    verdicts.clear()
    assert comes_late(sleeper, verdicts.append, headers=APP) is None, "who did not ask is not held"
    assert len(verdicts) == 1


def ledger_with_line() -> Ledger:
    """Three in line, no permit."""
    ledger = Ledger(small_room(), "here", 1, START_MS)
    for number in range(3):
        assert (
            ledger.poll(ticket_id(number), make_key(START_MS, number), START_MS, 0).standing
            is Standing.WAITING
        )
    return ledger


def polled(ledger: Ledger, number: int, now_ms: int) -> Outcome:
    return ledger.poll(ticket_id(number), make_key(START_MS, number), now_ms, 0)


def test_one_place_is_kept_at_a_time() -> None:
    ledger = ledger_with_line()
    ledger.keep(ticket_id(0), 100_000, START_MS)
    ledger.lease.permits = 1  # two are called now
    ledger.keep(ticket_id(1), 100_000, START_MS)
    assert ledger.line.kept == ticket_id(0)
    ledger.sweep(START_MS + 60_000)
    assert list(ledger.line.slots) == [ticket_id(0)]
    ledger.lease.permits = 0
    later_ms = START_MS + 100_000 * 115 // 100 + GRACE_MS + 1_000
    polled(ledger, 1, later_ms - 500)
    ledger.sweep(later_ms)
    assert ledger.line.kept is None
    ledger.keep(ticket_id(1), 100_000, later_ms)
    assert ledger.line.kept == ticket_id(1)


def test_none_is_kept_for_long_and_none_where_permits_come_often() -> None:
    ledger = ledger_with_line()
    ledger.keep(ticket_id(0), 10**12, START_MS)
    ledger.sweep(START_MS + GAP_MAX_MS * 115 // 100 + GRACE_MS + 1_000)
    assert ledger.line.kept is None
    ledger = ledger_with_line()
    ledger.keep(ticket_id(2), 60_000, START_MS)
    assert ledger.line.kept is None, "not in front"
    ledger.lookahead.pace = 0.1
    ledger.keep(ticket_id(0), 60_000, START_MS)
    assert ledger.line.kept is None
