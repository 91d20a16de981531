"""The session of a stream: renewed while it is open, seen to end within q, and never made longer
than the room allows.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from admission_world import small_room
from visitors import Browser, Site

from greenroom.decision.open_session import LOOKED_AHEAD_MS, OpenSession
from greenroom.decision.verdict import Forward
from greenroom.model.visit import Outcome, Standing

SWEEP_MS = 500
MINUTE_MS = 60_000
SOCKET = ((b"upgrade", b"websocket"), (b"connection", b"Upgrade"))

Open = Callable[..., Site]


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    """A site with one room: one inside, sessions of a minute, so that q is one second."""

    def opened(**changes: object) -> Site:
        return Site(
            tmp_path,
            small_room(
                **{
                    "total_active_users": 1,
                    "new_users_per_minute": 100,
                    "session_duration": 1,
                    **changes,
                }
            ),
        )

    return opened


def stream(site: Site, **request: object) -> tuple[Browser, OpenSession]:
    browser = Browser(site)
    forward = browser.visit(**request)  # type: ignore[arg-type]
    assert isinstance(forward, Forward)
    return browser, OpenSession(forward, site.decisions)


def stays_open(site: Site, session: OpenSession, ms: int) -> int:
    """Sweeps for so long; when it was told to end, or as long as it was watched."""
    for passed_ms in range(0, ms, SWEEP_MS):
        if session.is_over():
            return passed_ms
        site.advance(SWEEP_MS)
    return ms


def test_a_session_lives_as_long_as_its_stream_and_a_session_duration_longer(site_of: Open) -> None:
    site = site_of()
    _, session = stream(site)
    assert stays_open(site, session, 20 * MINUTE_MS) == 20 * MINUTE_MS
    session.finish()
    site.advance(MINUTE_MS)
    assert site.ledgers["r"].gauges().active == 1
    site.advance(2_500)
    assert site.ledgers["r"].gauges().active == 0


def test_without_renewal_a_stream_ends_before_its_place_is_given_away(site_of: Open) -> None:
    site = site_of(disable_session_renewal=True)
    _, session = stream(site)
    open_ms = stays_open(site, session, 2 * MINUTE_MS)
    assert MINUTE_MS - LOOKED_AHEAD_MS - SWEEP_MS <= open_ms <= MINUTE_MS
    assert site.ledgers["r"].gauges().active == 1, "no other visitor can be in yet"


def test_a_session_that_ends_before_its_time_is_noticed_within_q(site_of: Open) -> None:
    site = site_of()
    _, session = stream(site)
    assert stays_open(site, session, 10_000) == 10_000
    assert session._forward.ticket
    site.ledgers["r"].leave(session._forward.ticket.id)
    assert stays_open(site, session, 10_000) <= 1_000
    session.finish()
    assert site.ledgers["r"].gauges().active == 0, "a session that is over does not come back"


def test_a_room_may_leave_streams_open(site_of: Open) -> None:
    site = site_of(disable_session_renewal=True, keep_streams_open=True)
    _, session = stream(site)
    assert stays_open(site, session, 3 * MINUTE_MS) == 3 * MINUTE_MS


def test_a_room_that_is_suspended_or_gone_ends_no_stream(site_of: Open) -> None:
    for changed in (
        (small_room(suspended=True),),
        (small_room(id="other", name="other", host="other.example"),),
    ):
        site = site_of(disable_session_renewal=True)
        _, session = stream(site)
        site.ledgers["other"] = site.ledgers["r"]
        site.configure(*changed)
        assert stays_open(site, session, 2 * MINUTE_MS) == 2 * MINUTE_MS


def test_the_stream_of_a_provisional_session_makes_it_a_full_one_only_when_it_lasts(
    site_of: Open,
) -> None:
    site = site_of(total_active_users=8)
    _, short = stream(site, headers=SOCKET)
    assert stays_open(site, short, 6_000) == 6_000
    short.finish()
    site.advance(5_000)
    assert site.ledgers["r"].gauges().active == 0, "some seconds are no visit"
    _, lasting = stream(site, headers=SOCKET)
    assert stays_open(site, lasting, 5 * MINUTE_MS) == 5 * MINUTE_MS
    assert site.ledgers["r"].gauges().active == 1


def test_a_ledger_that_does_not_answer_ends_a_stream_only_when_its_session_must_have_ended(
    site_of: Open,
) -> None:
    site = site_of()
    _, session = stream(site)
    assert stays_open(site, session, 5_000) == 5_000
    unknown = Outcome(Standing.WAITING, storage_failed=True)
    site.change_ledger("view", lambda _id, then: then(unknown))
    open_ms = stays_open(site, session, 3 * MINUTE_MS)
    assert MINUTE_MS - 3_000 <= open_ms <= MINUTE_MS + 1_000


def test_a_look_that_is_not_answered_yet_is_not_asked_again(site_of: Open) -> None:
    site = site_of()
    _, session = stream(site)
    asked: list[object] = []
    site.change_ledger("view", lambda _id, then: asked.append(then))
    stays_open(site, session, 30_000)
    assert len(asked) == 1


def test_ten_thousand_streams_are_looked_at_spread_over_time_and_not_more_often_than_half_of_q(
    site_of: Open,
) -> None:
    site = site_of(session_duration=5, total_active_users=10_000, new_users_per_minute=10_000)
    _, first = stream(site)
    looks: list[int] = []
    view = site.stage.ledger.view

    def counted(ticket_id: bytes, then: Callable[[Outcome], None]) -> None:
        looks.append(site.clock.ms)
        view(ticket_id, then)

    site.change_ledger("view", counted)
    sessions = [first] + [
        OpenSession(first._forward, site.decisions, place) for place in range(1, 1_000)
    ]
    for _ in range(40):
        for session in sessions:
            assert not session.is_over()
        site.advance(SWEEP_MS)
    assert len(looks) <= 1_000 * 20_000 / 2_500
    most = max(looks.count(at) for at in set(looks))
    assert most <= 400, f"{most} of 1000 were looked at in one sweep"
