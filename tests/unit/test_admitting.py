"""What admitted visitors are given: the same for the requests of one moment, and made again when
anything about it has changed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from admission_world import small_room
from visitors import NAVIGATES, Browser, Site

from greenroom.decision import admitting
from greenroom.decision.verdict import Forward
from greenroom.keys.ticket_keys import ACTIVATION_DELAY_MS
from greenroom.model.answer import Answer
from greenroom.model.record import replace
from greenroom.model.visit import Arrival

Open = Callable[..., Site]


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    return lambda **changes: Site(tmp_path, small_room(**changes))


def inside(site: Site) -> Browser:
    """A visitor who is let in; the clock is at the beginning of a second from then on."""
    browser = Browser(site)
    browser.visit()
    site.advance(1_000 - site.clock.ms % 1_000)
    return browser


def given(site: Site, arrival: Arrival) -> Forward:
    reply = site.ask(arrival)
    assert isinstance(reply, Forward)
    return reply


def sealed(forward: Forward) -> bytes:
    return forward.set_cookie.partition(b"=")[2].partition(b";")[0]


def test_the_requests_of_one_page_get_the_same_cookie_although_the_ticket_is_renewed(
    site_of: Open,
) -> None:
    site = site_of()
    arrival = inside(site).arrival()
    site.advance(30_000)
    first = given(site, arrival)
    assert sealed(first) not in dict(arrival.headers)[b"cookie"], "the session was renewed"
    site.advance(10)
    other = given(site, replace(arrival, path="/style.css", client="192.0.2.9"))
    assert other.set_cookie == first.set_cookie
    assert given(site, replace(arrival, scheme="https")).set_cookie != first.set_cookie, (
        "attributes depend on the scheme"
    )


def test_a_second_later_the_cookie_lasts_a_second_longer_and_has_the_same_ticket(
    site_of: Open,
) -> None:
    site = site_of()
    arrival = inside(site).arrival()
    site.advance(30_000)
    first = given(site, arrival)
    site.advance(1_000)
    later = given(site, arrival)
    assert sealed(later) == sealed(first)
    assert later.set_cookie != first.set_cookie


def test_a_new_key_seals_the_ticket_anew_at_once(site_of: Open) -> None:
    site = site_of()
    arrival = inside(site).arrival()
    site.advance(30_000)
    first = given(site, arrival)
    site.ring.rotate(site.clock.ms - ACTIVATION_DELAY_MS)
    assert site.ring.tend(site.clock.ms)
    assert sealed(given(site, arrival)) != sealed(first)


def test_what_is_changed_in_the_room_counts_at_once(site_of: Open) -> None:
    site = site_of()
    arrival = inside(site).arrival()
    first = given(site, arrival)
    site.configure(small_room(session_duration=2))
    assert b"Max-Age=120;" in given(site, arrival).set_cookie
    assert b"Max-Age=60;" in first.set_cookie


def test_where_sessions_are_not_renewed_the_cookie_ends_with_the_session(site_of: Open) -> None:
    site = site_of(disable_session_renewal=True)
    arrival = inside(site).arrival()
    ages = []
    for _ in range(4):
        ages.append(
            int(given(site, arrival).set_cookie.partition(b"Max-Age=")[2].partition(b";")[0])
        )
        site.advance(500)
    assert ages == sorted(ages, reverse=True)
    assert ages[0] - ages[-1] >= 1


def test_the_page_of_a_visitor_in_line_is_told_so_and_not_sent_on(site_of: Open) -> None:
    site = site_of()
    browser = inside(site)
    assert isinstance(site.ask(browser.arrival()), Forward)
    assert isinstance(
        site.ask(browser.arrival(headers=(*NAVIGATES, (b"greenroom-update", b"fifo")))), Answer
    )
    assert isinstance(site.ask(browser.arrival()), Forward)


def test_the_cache_is_bounded(site_of: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admitting, "SESSIONS_CACHED", 3)
    site = site_of(total_active_users=100, new_users_per_minute=100)
    for _ in range(10):
        browser = inside(site)
        given(site, browser.arrival())
        assert len(site.decisions._admit.__self__._given) <= 3  # type: ignore[attr-defined]
