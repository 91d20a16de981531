"""Requests that cannot wait: assets, programs and crawlers pass an empty room, and never get a
success from a full one.
"""

import json
from pathlib import Path

import pytest
from decision_sites import Open, full, held, sites_in
from visitors import NAVIGATES, Browser, header

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    return sites_in(tmp_path)


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
def test_what_cannot_wait_passes_an_empty_room_and_holds_its_place_for_seconds(
    site_of: Open, request_of: dict[str, object]
) -> None:
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
        ended = {
            "active": 2,
            "admitted": 1,
        }  # without renewal it ended with the duration of the room, and another one began
        assert site.counted.of("r") == {"provisional": 1, **(ended if fixed else {"active": 3})}


@pytest.mark.parametrize(
    ("what", "status"), [(what, 200 if what == "HEAD" else 503) for what in BLIND]
)
def test_what_cannot_wait_gets_no_success_and_no_ticket_from_a_full_room(
    site_of: Open, what: str, status: int
) -> None:
    site = site_of()
    full(site)
    browser, reply = held(site, **BLIND[what])
    assert (reply.status, browser.jar) == (status, {})
    assert header(reply, b"Cache-Control") == b"private, no-store"
    assert status == 200 or int(header(reply, b"Retry-After")) > 0
    assert b"<html" not in reply.body or what == "HEAD", "see test_held_head"
    assert site.counted.of("r")["placeless"] == 1


def test_a_room_can_do_without_provisional_sessions_and_answer_everything_alike_as_the_original_does(
    site_of: Open,
) -> None:
    site = site_of(provisional_sessions=False, same_status_for_all=True, queueing_status_code=202)
    for what, request_of in BLIND.items():
        _, reply = held(site, **request_of)
        assert reply.status == (503 if what == "prefetch" else 202)


def test_a_program_that_reads_json_is_told_in_json_that_it_must_wait(site_of: Open) -> None:
    site = site_of()
    full(site)
    _, reply = held(
        site, headers=((b"sec-fetch-dest", b"empty"), (b"accept", b"application/json, */*"))
    )
    assert reply.status == 503
    assert header(reply, b"Content-Type") == b"application/problem+json"
    told = json.loads(reply.body)
    assert (told["status"], told["title"]) == (503, "Waiting room")


def test_the_requests_of_a_waiting_visitors_page_are_no_success_and_keep_the_place(
    site_of: Open,
) -> None:
    site = site_of()
    full(site)
    browser, _ = held(site)
    browser.wait()
    browser.visit()
    saved = browser.visit(
        method="POST",
        headers=((b"sec-fetch-dest", b"empty"), (b"content-type", b"application/json")),
    )
    assert isinstance(saved, Answer)
    assert saved.status == 503
    assert browser.jar


def test_a_session_that_ended_may_arrive_again_with_any_request_of_its_page(site_of: Open) -> None:
    site = site_of(new_users_per_minute=8)
    browser = full(site)
    site.advance(120_000)
    assert isinstance(
        browser.visit(method="POST", headers=((b"sec-fetch-dest", b"empty"),)), Forward
    )
    assert site.counted.of("r")["admitted"] == 2


def test_a_crawler_is_never_given_the_waiting_page_as_a_success(site_of: Open) -> None:
    site = site_of()
    full(site)
    crawler = (*NAVIGATES, (b"user-agent", b"Mozilla/5.0 (compatible; Googlebot/2.1)"))
    assert held(site, headers=crawler)[1].status == 503
    assert held(site_of(same_status_for_all=True, queue_all=True), headers=crawler)[1].status == 200


@pytest.mark.parametrize(
    "path",
    ["/sitemap.xml", "/.well-known/security.txt", "/.well-known/change-password", "/a/feed.JSON"],
)
def test_a_file_that_programs_fetch_is_never_the_waiting_page_with_a_success(
    site_of: Open, path: str
) -> None:
    site = site_of()
    full(site)
    program = ((b"accept", b"*/*"), (b"user-agent", b"scanner/1"))
    answer = held(site, headers=program, path=path)[1]
    assert answer.status == 503
    assert answer.headers.get(b"Retry-After") is not None
    assert held(site, headers=NAVIGATES, path=path)[1].status == 200, "a person sees the page"
    assert held(site, headers=program, path="/sale")[1].status == 200
    uniform = site_of(same_status_for_all=True, queue_all=True)
    assert held(uniform, headers=program, path=path)[1].status == 200
