"""The reception: which arrivals are let by, let in or held, and what they are told and given."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from admission_world import small_room
from visitors import NAVIGATES, Browser, Site, header

from greenroom.decision.room_schedule import Bypass
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival, Outcome

UPDATE = (*NAVIGATES, (b"greenroom-update", b"1"))
LEAVE = ((b"greenroom-update", b"leave"),)
JSON = ((b"accept", b"application/json"),)
MINUTE_MS = 60_000
HEALTH = Rule(expression='http.request.uri.path eq "/health"')

Open = Callable[..., Site]


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    """A site with one room: one inside and one a minute, unless something else is said."""

    def opened(bypass: Bypass | None = None, **changes: object) -> Site:
        return Site(tmp_path, small_room(**{"total_active_users": 1, "new_users_per_minute": 1, **changes}), bypass=bypass)

    return opened


def full(site: Site) -> Browser:
    """A visitor takes the only unit."""
    first = Browser(site)
    assert isinstance(first.visit(), Forward)
    return first


def held(site: Site, **request: object) -> tuple[Browser, Answer]:
    browser = Browser(site)
    reply = browser.visit(**request)  # type: ignore[arg-type]
    assert isinstance(reply, Answer)
    return browser, reply


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


def test_in_a_long_line_whose_wait_is_not_known_the_page_says_how_long_it_is_at_least(site_of: Open) -> None:
    site = site_of()
    full(site)
    waiting = [held(site)[0] for _ in range(4)]
    waiting[0].wait()
    for _ in range(2):  # the first time takes the places
        told = [json.loads(browser.visit(headers=UPDATE).body)["greenroom"] for browser in waiting]  # type: ignore[union-attr]
    assert sorted((one["position"], one["waitAtLeast"]) for one in told) == [(1, 0), (2, 1), (3, 2), (4, 3)]


def test_a_status_that_is_not_200_comes_with_retry_after(site_of: Open) -> None:
    site = site_of(queueing_status_code=202)
    full(site)
    _, reply = held(site)
    assert reply.status == 202
    assert header(reply, b"Retry-After") == header(reply, b"Refresh")


def test_who_stays_gets_in_when_the_session_before_has_ended(site_of: Open) -> None:
    site = site_of()
    full(site)
    browser, _ = held(site)
    for _ in range(40):
        browser.wait()
        reply = browser.visit()
        if isinstance(reply, Forward):
            break
    assert isinstance(reply, Forward)
    assert reply.ticket


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


BLIND = {
    "HEAD": {"method": "HEAD"},
    "HEAD of what is no page": {"method": "HEAD", "headers": ((b"sec-fetch-dest", b"image"),)},
    "prefetch": {"headers": ((b"sec-purpose", b"prefetch"),)},
    "image": {"headers": ((b"sec-fetch-dest", b"image"),)},
    "preflight": {"method": "OPTIONS", "headers": ((b"access-control-request-method", b"PUT"),)},
    "fetch": {"headers": ((b"sec-fetch-dest", b"empty"), (b"accept", b"*/*"))},
    "WebSocket": {"headers": ((b"upgrade", b"websocket"), (b"connection", b"Upgrade"))},
    "link preview": {"headers": ((b"user-agent", b"Slackbot 1.0"),)},
}


@pytest.mark.parametrize("request_of", BLIND.values(), ids=BLIND.keys())
def test_what_cannot_wait_passes_an_empty_room_and_holds_its_place_for_seconds(site_of: Open, request_of: dict[str, object]) -> None:
    site = site_of(new_users_per_minute=8)
    browser = Browser(site)
    assert isinstance(browser.visit(**request_of), Forward)
    assert site.counted.of("r") == {"provisional": 1}
    assert isinstance(Browser(site).visit(**request_of), Answer), "one at a time in a room of one"
    site.advance(12_000)
    assert isinstance(full(site).visit(), Forward), "the unit is free again"
    site.advance(12_000)
    assert site.ledgers["r"].gauges().active == 1


def test_a_provisional_session_becomes_a_full_one_when_its_ticket_comes_back(site_of: Open) -> None:
    for fixed in (False, True):
        site = site_of(disable_session_renewal=fixed)
        browser = Browser(site)
        browser.visit(**BLIND["image"])
        site.advance(9_000)
        assert isinstance(browser.visit(), Forward)
        site.advance(40_000)
        assert isinstance(browser.visit(), Forward)
        site.advance(30_000)
        assert isinstance(browser.visit(), Forward)
        ended = {"active": 2, "admitted": 1}  # without renewal it ended with the duration of the room, and another one began
        assert site.counted.of("r") == {"provisional": 1, **(ended if fixed else {"active": 3})}


@pytest.mark.parametrize(("what", "status"), [(what, 200 if what == "HEAD" else 503) for what in BLIND])
def test_what_cannot_wait_gets_no_success_and_no_ticket_from_a_full_room(site_of: Open, what: str, status: int) -> None:
    site = site_of()
    full(site)
    browser, reply = held(site, **BLIND[what])
    assert (reply.status, browser.jar) == (status, {})
    assert header(reply, b"Cache-Control") == b"private, no-store"
    assert status == 200 or int(header(reply, b"Retry-After")) > 0
    assert b"<html" not in reply.body or what == "HEAD", "see test_held_head"
    assert site.counted.of("r")["placeless"] == 1


def test_a_room_can_do_without_provisional_sessions_and_answer_everything_alike_as_the_original_does(site_of: Open) -> None:
    site = site_of(provisional_sessions=False, same_status_for_all=True, queueing_status_code=202)
    for what, request_of in BLIND.items():
        _, reply = held(site, **request_of)
        assert reply.status == (503 if what == "prefetch" else 202)


def test_a_program_that_reads_json_is_told_in_json_that_it_must_wait(site_of: Open) -> None:
    site = site_of()
    full(site)
    _, reply = held(site, headers=((b"sec-fetch-dest", b"empty"), (b"accept", b"application/json, */*")))
    assert reply.status == 503
    assert header(reply, b"Content-Type") == b"application/problem+json"
    told = json.loads(reply.body)
    assert (told["status"], told["title"]) == (503, "Waiting room")


def test_the_requests_of_a_waiting_visitors_page_are_no_success_and_keep_the_place(site_of: Open) -> None:
    site = site_of()
    full(site)
    browser, _ = held(site)
    browser.wait()
    browser.visit()
    saved = browser.visit(method="POST", headers=((b"sec-fetch-dest", b"empty"), (b"content-type", b"application/json")))
    assert isinstance(saved, Answer)
    assert saved.status == 503
    assert browser.jar


def test_a_session_that_ended_may_arrive_again_with_any_request_of_its_page(site_of: Open) -> None:
    site = site_of(new_users_per_minute=8)
    browser = full(site)
    site.advance(120_000)
    assert isinstance(browser.visit(method="POST", headers=((b"sec-fetch-dest", b"empty"),)), Forward)
    assert site.counted.of("r")["admitted"] == 2


def test_a_crawler_is_never_given_the_waiting_page_as_a_success(site_of: Open) -> None:
    site = site_of()
    full(site)
    crawler = (*NAVIGATES, (b"user-agent", b"Mozilla/5.0 (compatible; Googlebot/2.1)"))
    assert held(site, headers=crawler)[1].status == 503
    assert held(site_of(same_status_for_all=True, queue_all=True), headers=crawler)[1].status == 200


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


def test_queue_all_holds_everybody_in_front_of_an_empty_room(site_of: Open) -> None:
    site = site_of(queue_all=True)
    browser, _ = held(site)
    for _ in range(5):
        browser.wait()
        assert isinstance(browser.visit(), Answer)


def test_passthrough_lets_everybody_in_and_counts_them(site_of: Open) -> None:
    site = site_of(queueing_method="passthrough")
    assert all(isinstance(Browser(site).visit(), Forward) for _ in range(5))
    assert site.ledgers["r"].gauges().active == 5


def test_revoke_ends_the_session_only_where_the_room_allows_it(site_of: Open) -> None:
    for allowed in ((), ("revoke",)):
        site = site_of(enabled_origin_commands=allowed, new_users_per_minute=5)
        first = Browser(site)
        forward = first.visit()
        assert isinstance(forward, Forward)
        cookie = site.decisions.obey(forward, b" Revoke ")
        assert bool(cookie) == bool(allowed)
        assert site.decisions.obey(forward, b"explode") == b""
        site.advance(2000)
        assert isinstance(Browser(site).visit(), Forward) == bool(allowed)


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
        first.visit(method="POST", headers=(*LEAVE, (b"host", b"shop.example:8080"), (b"origin", origin)))
        reply = first.visit(method="POST", query="greenroom=leave", headers=((b"host", b"shop.example:80"), (b"origin", origin)))
        assert isinstance(reply, Forward), origin
    assert site.counted.of("r").get("left", 0) == 0


def test_old_browsers_that_say_only_their_origin_can_leave_also_behind_a_proxy_that_ends_tls(site_of: Open) -> None:
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
        assert site.counted.of("r").get("left", 0) == 1


def test_of_several_tickets_the_best_one_counts(site_of: Open) -> None:
    site = site_of()
    first = full(site)
    browser, _ = held(site)
    ((name, waiting),) = browser.jar.items()
    cookies = b"; ".join([name + b"=" + waiting, name + b"=AAAA", name + b"=" + first.jar[name]])
    reply = Browser(site).visit(headers=(*NAVIGATES, (b"cookie", cookies)))
    assert isinstance(reply, Forward)


@pytest.mark.parametrize(("before", "after"), [(8, 0), (31, 0), (200, 0), (0, 200), (15, 200), (200, 15)])
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


def test_a_ticket_of_one_room_is_nothing_in_another(tmp_path: Path) -> None:
    one = small_room(id="one", name="one", host="one.example", total_active_users=1)
    two = small_room(id="two", name="two", host="two.example", total_active_users=1)
    site = Site(tmp_path, one, two)
    first = Browser(site, "one.example")
    assert isinstance(first.visit(), Forward)
    assert isinstance(Browser(site, "two.example").visit(), Forward)
    first.host = "two.example"
    assert isinstance(first.visit(), Answer)


def test_a_ledger_that_fails_holds_the_visitor(site_of: Open) -> None:
    site = site_of()

    def fails(*_: object) -> Outcome:
        raise RuntimeError("no books")

    site.change_ledger("arrive_now", fails)
    reply = Browser(site).visit()
    assert isinstance(reply, Answer)
    assert reply.status == 503
    assert [str(error) for error in site.errors] == ["no books"]


def test_ten_thousand_hits_without_cookies_cost_the_next_honest_visitor_nothing(site_of: Open) -> None:
    site = site_of(total_active_users=5, new_users_per_minute=5)
    honest = Browser(site)
    for _ in range(5):
        full(site)
    assert isinstance(honest.visit(), Answer)
    honest.wait()
    honest.visit()
    for _ in range(10_000):
        assert isinstance(Browser(site).visit(), Answer)
    assert site.ledgers["r"].gauges().waiting == 1
    for _ in range(60):
        honest.wait()
        if isinstance(honest.visit(), Forward):
            break
    else:
        pytest.fail("the honest visitor never got in")
