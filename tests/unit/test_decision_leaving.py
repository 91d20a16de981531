"""Leaving the line: by the page's own request alone, and the unit goes to the next."""

from pathlib import Path

import pytest
from decision_sites import Open, full, held, sites_in
from visitors import Browser

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer

LEAVE = ((b"greenroom-update", b"leave"),)


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    return sites_in(tmp_path)


def test_who_leaves_gives_the_unit_to_the_next(site_of: Open) -> None:
    site = site_of(new_users_per_minute=5)
    first = full(site)
    browser, _ = held(site)
    reply = first.visit(method="POST", headers=LEAVE)
    assert isinstance(reply, Answer)
    assert first.jar == {}
    browser.wait()
    site.advance(2000)
    assert isinstance(browser.visit(), Forward)


def test_who_has_no_place_any_more_leaves_without_troubling_the_application(site_of: Open) -> None:
    site = site_of()
    for headers, query in ((LEAVE, ""), ((), "greenroom=leave")):
        reply = Browser(site).visit(method="POST", headers=headers, query=query)
        assert isinstance(reply, Answer)
        assert reply.set_cookie == b"", "a cookie that holds no ticket is not ours to delete"
    assert isinstance(Browser(site).visit(), Forward), "nobody took the place"


def test_the_farewell_is_shown_in_a_frame_only_where_the_page_itself_is(site_of: Open) -> None:
    for sites, allowed in (
        ("", b"frame-ancestors 'none'"),
        ("https://partner.example", b"frame-ancestors https://partner.example"),
    ):
        reply = full(site_of(frame_ancestors=sites)).visit(method="POST", query="greenroom=leave")
        assert isinstance(reply, Answer)
        assert (reply.headers.get(b"Content-Security-Policy") or b"").endswith(allowed)


def test_no_other_site_can_make_a_visitor_leave(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    first.visit(method="POST", headers=(*LEAVE, (b"sec-fetch-site", b"cross-site")))
    assert isinstance(first.visit(), Forward)
    for origin in (
        b"https://evil.example",
        b"null",
        b"http://shop.example.evil.example",
        b"http://shop.example:9000",
        b"",
        b"shop.example",
    ):
        first.visit(
            method="POST", headers=(*LEAVE, (b"host", b"shop.example:8080"), (b"origin", origin))
        )
        reply = first.visit(
            method="POST",
            query="greenroom=leave",
            headers=((b"host", b"shop.example:80"), (b"origin", origin)),
        )
        assert isinstance(reply, Forward), origin
    assert not site.counted.of("r").keys() & {"left", "ended", "not_here"}


def test_old_browsers_that_say_only_their_origin_can_leave_also_behind_a_proxy_that_ends_tls(
    site_of: Open,
) -> None:
    for host, origin in (
        (b"shop.example", b"http://shop.example"),
        (b"shop.example", b"https://Shop.Example"),
        (b"shop.example", b"https://shop.example:8443"),
        (b"Shop.example:443", b"https://shop.example"),
        (b"shop.example:8080", b"http://shop.example:8080"),
    ):
        site = site_of()
        first = full(site)
        reply = first.visit(method="POST", headers=(*LEAVE, (b"host", host), (b"origin", origin)))
        assert isinstance(reply, Answer), origin
        assert site.counted.of("r").get("ended", 0) == 1


def test_counted_is_who_had_a_place_or_a_session_once_each_and_apart(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    browser, _ = held(site)
    browser.wait()
    browser.visit()
    stranger = Browser(site)
    for leaver in (first, browser, stranger):
        ticket = dict(leaver.jar)
        for _ in range(5):  # the same ticket each time
            leaver.jar.update(ticket)
            leaver.visit(method="POST", headers=LEAVE)
    counted = site.counted.of("r")
    assert (counted["ended"], counted["left"], counted["not_here"]) == (1, 1, 13)


def test_a_session_that_the_application_ends_counts_once(site_of: Open) -> None:
    site = site_of(enabled_origin_commands=("revoke",))
    forward = full(site).visit()
    assert isinstance(forward, Forward)
    for _ in range(3):
        assert site.decisions.obey(forward, b"revoke")
    assert site.counted.of("r")["revoked"] == 1
