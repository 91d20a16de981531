"""The tickets of visitors whose session is in another data center: what a page on trust notes in
them, and that they are kept while a session is searched.
"""

from collections.abc import Callable
from pathlib import Path

from admission_world import small_room
from visitors import Browser, Site

from greenroom.decision.data_centers import DataCenters
from greenroom.decision.tickets import TRUST_MAX_MS, Sealer
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.visit import Outcome, Standing, Ticket, make_key


class Abroad:
    """A visitor of Paris at a ledger that answers `told` to all who come from there."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder, small_room(session_duration=2))
        self.site.decisions.data_centers = DataCenters.of("paris", ("paris", "oslo"))
        self.visitor = Browser(self.site)
        assert isinstance(self.visitor.visit(), Forward)
        self.site.decisions.data_centers = DataCenters.of("oslo", ("paris", "oslo"))
        self.told = Outcome(Standing.GONE)
        self.asked: list[tuple[str, int, int]] = []
        self.site.change_ledger("view", lambda _, then: then(Outcome(Standing.GONE)))
        self.site.change_ledger("visit", self._visit)

    def _visit(self, ticket: Ticket, home: str, then: Callable[[Outcome], None]) -> None:
        self.asked.append((home, ticket.checked_ms, ticket.checked_ms + ticket.refresh_ms))
        then(self.told)


def test_the_ticket_of_a_page_on_trust_notes_when_it_was_served(tmp_path: Path) -> None:
    abroad = Abroad(tmp_path)
    let_in_ms = abroad.site.clock.ms
    abroad.site.advance(90_500)
    abroad.told = Outcome(Standing.ACTIVE, let_in_ms + 122_000, let_in_ms, refresh_ms=90_500)
    for _ in range(2):
        assert isinstance(abroad.visitor.visit(), Forward)
    assert abroad.asked == [
        ("paris", let_in_ms, let_in_ms),
        ("paris", let_in_ms, let_in_ms + 90_000),
    ]


def test_the_ticket_is_kept_while_its_session_is_searched(tmp_path: Path) -> None:
    abroad = Abroad(tmp_path)
    abroad.told = Outcome(
        Standing.WAITING, 0, 0, abroad.site.clock.ms, 1_000, 1, 0, 5, searching=True
    )
    page = abroad.visitor.visit()
    assert isinstance(page, Answer)
    assert page.set_cookie == b""
    assert abroad.visitor.retry_s == 1
    abroad.told = Outcome(Standing.WAITING, 0, 0, abroad.site.clock.ms, 1_000, 1, 0, 5)
    assert abroad.visitor.visit().set_cookie, "who is held in line gets a place"
    assert abroad.asked[0] == abroad.asked[1]


def test_an_older_session_that_was_left_here_does_not_shorten_the_ticket(tmp_path: Path) -> None:
    abroad = Abroad(tmp_path)
    let_in_ms = abroad.site.clock.ms
    abroad.site.advance(50_000)
    left = Outcome(Standing.ACTIVE, let_in_ms + 62_000, let_in_ms - 60_000)
    abroad.site.change_ledger("view", lambda _, then: then(left))
    assert isinstance(abroad.visitor.visit(), Forward)
    assert abroad.asked == []
    abroad.site.advance(12_500)
    abroad.site.change_ledger("view", lambda _, then: then(Outcome(Standing.GONE)))
    abroad.told = Outcome(Standing.ACTIVE, let_in_ms + 122_000, let_in_ms)
    assert isinstance(abroad.visitor.visit(), Forward)
    assert abroad.asked == [("paris", let_in_ms, let_in_ms)]


def test_a_newer_session_here_replaces_that_of_the_ticket(tmp_path: Path) -> None:
    abroad = Abroad(tmp_path)
    abroad.site.advance(50_000)
    now_ms = abroad.site.clock.ms
    abroad.site.change_ledger(
        "view", lambda _, then: then(Outcome(Standing.ACTIVE, now_ms + 122_000, now_ms))
    )
    assert isinstance(abroad.visitor.visit(), Forward)
    abroad.site.change_ledger("view", lambda _, then: then(Outcome(Standing.GONE)))
    abroad.visitor.visit()
    assert abroad.asked == [("oslo", now_ms, now_ms)]


def test_a_ticket_notes_a_page_on_trust_of_the_longest_session(tmp_path: Path) -> None:
    site = Site(tmp_path)
    sealer, now_ms = Sealer(site.ring), site.clock.ms
    key = make_key(now_ms, 1)
    for accepted_ms, refresh_ms, opens in (
        (now_ms, TRUST_MAX_MS, True),
        (now_ms, TRUST_MAX_MS + 1, False),
        (0, TRUST_MAX_MS, False),
    ):
        ticket = Ticket(b"i" * 12, key, accepted_ms, now_ms, refresh_ms)
        found = sealer.open(sealer.seal(ticket, b"r"), b"r", now_ms)
        assert found == (ticket if opens else None)
