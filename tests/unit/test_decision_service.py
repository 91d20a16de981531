"""The reception: which arrivals are let by, let in or held, and what they are told and given."""

import json
from pathlib import Path

import pytest
from admission_world import small_room
from decision_sites import Open, full, held, sites_in
from visitors import NAVIGATES, Browser, header

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival, Outcome

UPDATE = (*NAVIGATES, (b"greenroom-update", b"1"))
LEAVE = ((b"greenroom-update", b"leave"),)
JSON = ((b"accept", b"application/json"),)
MINUTE_MS = 60_000
HEALTH = Rule(expression='http.request.uri.path eq "/health"')


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    return sites_in(tmp_path)


def test_a_visitor_no_room_covers_goes_on_without_a_ticket(site_of: Open) -> None:
    site = site_of(host="other.example")
    assert Browser(site).visit() == Forward()
    assert site.counted.of("r") == {}


def test_a_suspended_room_lets_everybody_by_and_writes_nothing_down(site_of: Open) -> None:
    site = site_of(suspended=True)
    assert [Browser(site).visit() for _ in range(3)] == [Forward()] * 3
    assert site.ledgers["r"].gauges().active == 0


def test_whom_a_rule_lets_by_takes_no_unit(site_of: Open) -> None:
    site = site_of(bypass=lambda arrival, _: HEALTH if arrival.path == "/health" else None)
    full(site)
    assert Browser(site).visit("/health") == Forward()
    assert isinstance(Browser(site).visit("/"), Answer)
    assert site.counted.of("r").get("bypassed", 0) == 1


def test_a_rule_that_fails_holds_the_visitor(site_of: Open) -> None:
    def broken(_: Arrival, __: int) -> Rule:
        raise ZeroDivisionError

    site = site_of(bypass=broken)
    reply = Browser(site).visit()
    assert isinstance(reply, Answer)
    assert reply.status == 503
    assert len(site.errors) == 1


def test_the_first_visitor_is_let_in_and_comes_back_with_the_ticket(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    assert isinstance(first.visit("/next"), Forward)
    assert site.counted.of("r") == {"admitted": 1, "active": 1}


def test_a_ticket_need_not_be_sent_again_while_half_its_time_is_left(site_of: Open) -> None:
    site = site_of()
    browser = Browser(site)
    early = []
    for after_ms in (0, 0, MINUTE_MS // 2, MINUTE_MS // 2 + 1):
        site.advance(after_ms)
        early.append(browser.visit().renews_early)  # type: ignore[union-attr]
    assert early == [False, True, True, False]


def test_the_second_visitor_is_held_and_never_stored_by_a_cache(site_of: Open) -> None:
    site = site_of()
    full(site)
    _, reply = held(site)
    assert reply.status == 200
    assert b"no-store" in header(reply, b"Cache-Control")
    assert header(reply, b"Refresh").isdigit()
    assert header(reply, b"Retry-After") == b""
    assert b"<html" in reply.body


def test_in_a_long_line_whose_wait_is_not_known_the_page_says_how_long_it_is_at_least(
    site_of: Open,
) -> None:
    site = site_of()
    full(site)
    waiting = [held(site)[0] for _ in range(4)]
    waiting[0].wait()
    for _ in range(2):  # the first time takes the places
        told = [json.loads(browser.visit(headers=UPDATE).body)["greenroom"] for browser in waiting]  # type: ignore[union-attr]
    assert sorted((one["position"], one["waitAtLeast"]) for one in told) == [
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 3),
    ]


def test_a_status_that_is_not_200_comes_with_retry_after(site_of: Open) -> None:
    site = site_of(queueing_status_code=202)
    full(site)
    _, reply = held(site)
    assert reply.status == 202
    assert header(reply, b"Retry-After") == header(reply, b"Refresh")


def test_a_session_that_ended_is_a_new_visitor(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    site.advance(2 * MINUTE_MS)
    full(site)
    assert isinstance(first.visit(), Answer)


def test_browsing_renews_the_session_and_a_room_may_forbid_that(site_of: Open) -> None:
    for fixed in (False, True):
        site = site_of(disable_session_renewal=fixed)
        browser = full(site)
        for _ in range(4):
            site.advance(MINUTE_MS // 2 - 1)
            assert isinstance(browser.visit(), Forward)
        assert site.counted.of("r").get("admitted", 0) == (2 if fixed else 1)


def test_an_early_reload_changes_nothing(site_of: Open) -> None:
    site = site_of()
    full(site)
    browser, _ = held(site)
    browser.wait()
    browser.visit(headers=UPDATE)
    ticket, retry_s = dict(browser.jar), browser.retry_s
    assert retry_s > 1
    site.advance(1000)
    again = browser.visit(headers=UPDATE)
    assert isinstance(again, Answer)
    assert browser.retry_s == retry_s - 1
    assert set(browser.jar) == set(ticket)


def test_an_update_is_answered_from_here_also_when_it_lets_in(site_of: Open) -> None:
    site = site_of()
    reply = Browser(site).visit(headers=UPDATE)
    assert isinstance(reply, Answer)
    assert json.loads(reply.body) == {"cfWaitingRoom": {"inWaitingRoom": False}}
    assert reply.set_cookie


def test_json_is_for_those_who_ask_for_it_in_a_room_that_gives_it(site_of: Open) -> None:
    for enabled in (True, False):
        site = site_of(json_response_enabled=enabled)
        full(site)
        _, reply = held(site, headers=JSON)
        assert (header(reply, b"Content-Type").startswith(b"application/json")) == enabled
        if enabled:
            assert json.loads(reply.body)["cfWaitingRoom"]["inWaitingRoom"] is True


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_every_method_is_gated(site_of: Open, method: str) -> None:
    site = site_of()
    full(site)
    _, reply = held(site, method=method)
    assert reply.status == 200


def test_a_room_that_rejects_shows_its_page_without_a_refresh_or_a_ticket(site_of: Open) -> None:
    site = site_of(queueing_method="reject")
    browser, reply = held(site)
    assert header(reply, b"Refresh") == b""
    assert browser.jar == {}


def test_a_room_that_rejects_lets_sessions_go_on(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    site.configure(small_room(queueing_method="reject"))
    assert isinstance(first.visit(), Forward)


def test_revoke_ends_the_session_only_where_the_room_allows_it(site_of: Open) -> None:
    for allowed in ((), ("revoke",)):
        site = site_of(enabled_origin_commands=allowed, new_users_per_minute=5)
        first = Browser(site)
        forward = first.visit()
        assert isinstance(forward, Forward)
        cookie = site.decisions.obey(forward, b"explode, Revoke ,x")
        assert bool(cookie) == bool(allowed)
        for unknown in (b"explode", b"revoke;now", b"revoked, ,x", b""):
            assert site.decisions.obey(forward, unknown) == b""
        site.advance(2000)
        assert isinstance(Browser(site).visit(), Forward) == bool(allowed)


@pytest.mark.parametrize(
    ("before", "after"), [(8, 0), (31, 0), (200, 0), (0, 200), (15, 200), (200, 15)]
)
def test_the_real_ticket_is_found_among_forged_ones(site_of: Open, before: int, after: int) -> None:
    site = site_of()
    first = full(site)
    ((name, real),) = first.jar.items()
    forged = name + b"=" + real[:8] + b"A" * 100
    cookies = b"; ".join([forged] * before + [name + b"=" + real] + [forged] * after)
    assert isinstance(Browser(site).visit(headers=(*NAVIGATES, (b"cookie", cookies))), Forward)


def test_a_session_that_is_gone_falls_back_to_the_place_in_line(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    browser, _ = held(site)
    browser.wait()
    browser.visit()
    ((name, waiting),) = browser.jar.items()
    cookies = name + b"=" + first.jar[name] + b"; " + name + b"=" + waiting
    first.visit(method="POST", headers=LEAVE)
    browser.wait()
    reply = Browser(site).visit(headers=(*NAVIGATES, (b"cookie", cookies)))
    assert isinstance(reply, Answer)
    assert site.ledgers["r"].gauges().waiting == 1


def test_a_ledger_that_fails_holds_the_visitor(site_of: Open) -> None:
    site = site_of()

    def fails(*_: object) -> Outcome:
        raise RuntimeError("no books")

    site.change_ledger("arrive_now", fails)
    reply = Browser(site).visit()
    assert isinstance(reply, Answer)
    assert reply.status == 503
    assert [str(error) for error in site.errors] == ["no books"]
