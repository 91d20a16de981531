"""The return from a payment or a sign-in: a form that another site sends into the window, with or
without the ticket.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from admission_world import small_room
from visitors import NAVIGATES, Browser, Site

from greenroom.admission.decide import comes_from_elsewhere
from greenroom.decision.cookies import TicketCookies
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.route import CookieAttributes
from greenroom.model.visit import Arrival
from greenroom.request.cookie_scope import crosses_sites

RETURN = (*NAVIGATES, (b"sec-fetch-site", b"cross-site"), (b"origin", b"https://pay.example"))
OLD_RETURN = (
    (b"accept", b"text/html"),
    (b"origin", b"https://pay.example"),
)  # over plain http there are no Sec-Fetch headers
SAME = (*NAVIGATES, (b"sec-fetch-site", b"same-origin"), (b"origin", b"http://shop.example"))

Open = Callable[..., Site]


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    def opened(**changes: object) -> Site:
        return Site(
            tmp_path,
            small_room(**{"total_active_users": 8, "new_users_per_minute": 100, **changes}),
        )

    return opened


def arrival(headers: tuple[tuple[bytes, bytes], ...], method: str = "POST") -> Arrival:
    return Arrival(method, "http", "shop.example", "/return", "", headers, "192.0.2.1")


@pytest.mark.parametrize(
    ("sent", "elsewhere"),
    [
        (arrival(RETURN), True),
        (arrival(OLD_RETURN), True),
        (arrival((*OLD_RETURN[:1], (b"origin", b"null"))), True),
        (arrival(SAME), False),
        (
            arrival(
                (
                    *NAVIGATES,
                    (b"sec-fetch-site", b"same-site"),
                    (b"origin", b"http://pay.shop.example"),
                )
            ),
            False,
        ),
        (arrival(((b"accept", b"text/html"), (b"origin", b"http://shop.example"))), False),
        (arrival(((b"accept", b"text/html"),)), False),
        (arrival(RETURN, "GET"), False),
        (arrival(((b"sec-fetch-dest", b"empty"), (b"sec-fetch-site", b"cross-site"))), False),
    ],
)
def test_what_another_site_sends_into_a_window(sent: Arrival, elsewhere: bool) -> None:
    assert comes_from_elsewhere(sent) == elsewhere


@pytest.mark.parametrize("headers", [RETURN, OLD_RETURN])
def test_with_a_lax_cookie_the_return_goes_on_and_never_sets_a_ticket(
    site_of: Open, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    site = site_of()
    stranger = Browser(site)
    verdict = stranger.visit("/return", "POST", headers=headers)
    assert isinstance(verdict, Forward)
    assert verdict.set_cookie == b""
    assert verdict.provisional
    site.advance(11_000)
    assert site.ledgers["r"].gauges().active == 0


def test_with_a_lax_cookie_a_full_room_answers_the_return_without_a_place_and_without_a_ticket(
    site_of: Open,
) -> None:
    site = site_of(total_active_users=1, provisional_sessions=True)
    Browser(site).visit()
    answer = Browser(site).visit("/return", "POST", headers=RETURN)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.set_cookie) == (503, b"")
    strict = site_of(provisional_sessions=False)
    answer = Browser(strict).visit("/return", "POST", headers=RETURN)
    assert isinstance(answer, Answer)
    assert answer.set_cookie == b""


def test_a_return_that_brings_its_ticket_is_the_visitor_it_was(site_of: Open) -> None:
    site = site_of(total_active_users=1)
    visitor = Browser(site)
    visitor.visit()
    assert isinstance(visitor.visit("/return", "POST", headers=RETURN), Forward)
    assert site.counted.of("r") == {"admitted": 1, "active": 1}


def test_the_first_request_of_a_new_visitor_may_be_such_a_form_where_tickets_cross_sites(
    site_of: Open,
) -> None:
    site = site_of(cookie_attributes=CookieAttributes("none", "always"))
    verdict = Browser(site).visit("/return", "POST", headers=RETURN)
    assert isinstance(verdict, Forward)
    assert verdict.set_cookie
    assert not verdict.provisional


def test_auto_follows_the_scheme_that_the_visitor_came_by() -> None:
    room = small_room()
    cookies = TicketCookies(room, always_use_https=False)
    assert b"SameSite=Lax" in cookies.of("http").expire()
    assert b"Secure; SameSite=None; Partitioned" in cookies.of("https").expire()
    always = TicketCookies(room, always_use_https=True)
    assert always.of("http").expire() == always.of("https").expire() == cookies.of("https").expire()
    never = small_room(cookie_attributes=CookieAttributes("auto", "never"))
    assert b"SameSite=Lax" in TicketCookies(never, always_use_https=False).of("https").expire()
    assert not crosses_sites(
        small_room(cookie_attributes=CookieAttributes("lax", "auto")), https=True
    )


def test_a_revoked_ticket_is_taken_away_with_the_attributes_that_it_was_given_with(
    site_of: Open,
) -> None:
    site = site_of(enabled_origin_commands=("revoke",))
    browser = Browser(site)
    sent = browser.arrival()
    secure = Arrival(sent.method, "https", sent.host, sent.path, "", sent.headers, sent.client)
    forward = site.ask(secure)
    assert isinstance(forward, Forward)
    assert b"Partitioned" in forward.set_cookie
    assert b"Partitioned" in site.decisions.obey(forward, b"revoke")
