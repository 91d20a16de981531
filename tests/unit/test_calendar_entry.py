"""A visitor in line takes a calendar entry along: its times, its link, and that it says no more."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from decision_sites import Open, full, held, sites_in
from visitors import NAVIGATES, Browser, Reply, Site

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.room import LANGUAGES
from greenroom.model.visit import Estimate
from greenroom.pages.brand import NO_BRAND
from greenroom.pages.calendar import calendar_entry
from greenroom.pages.language import language

ADD = language("en-US").calendar["add"]


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    return sites_in(tmp_path)


def entry_of(browser: Browser) -> str:
    reply = browser.visit(query="greenroom=calendar")
    assert isinstance(reply, Answer)
    assert reply.headers.get(b"content-type") == b"text/calendar; charset=utf-8", reply
    return reply.body.replace(b"\r\n ", b"").decode()


def value(entry: str, name: str) -> str:
    found = re.search(rf"^{name}:(.*)\r$", entry, re.M)
    assert found is not None, entry
    return found[1]


def seconds(text: str) -> float:
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def waits(site: Site, others: int = 0) -> Browser:
    """The last of some visitors in line, a minute for each."""
    full(site)
    for _ in range(others + 1):
        browser, _ = held(site)
        browser.wait()
        browser.visit()
    return browser


def body(reply: Reply) -> bytes:
    assert isinstance(reply, Answer)
    return reply.body


def test_the_entry_has_the_interval_of_the_estimate_and_the_link_moves_the_place(
    site_of: Open,
) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    waiting = waits(site, 4)
    entry = entry_of(waiting)
    now_s = site.clock.ms // 1000
    assert now_s < seconds(value(entry, "DTSTART")) < seconds(value(entry, "DTEND"))
    assert value(entry, "SUMMARY") == "shop.example: It is your turn"
    url = value(entry, "URL")
    assert value(entry, "DESCRIPTION").endswith(url)
    site.advance(20_000)
    phone, query = Browser(site), url.partition("?")[2]
    assert b"<button>Continue here" in body(phone.visit(query=query))
    reply = phone.visit(method="POST", query=query)
    assert isinstance(reply, Answer)
    assert reply.status == 303
    assert b"in line" in body(phone.visit())
    assert b"another device" in body(waiting.visit())


def test_the_code_of_an_entry_is_good_until_after_the_turn_and_no_longer(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    waiting = waits(site, 4)
    entry = entry_of(waiting)
    late_ms = int(seconds(value(entry, "DTEND")) * 1000) - site.clock.ms
    for _ in range(late_ms // 5_000):
        site.advance(5_000)
        waiting.visit()
    query = value(entry, "URL").partition("?")[2]
    assert b"<button>Continue here" in body(Browser(site).visit(query=query))
    for _ in range(24 * 60):
        site.advance(60_000)
    assert b"no longer works" in body(Browser(site).visit(query=query))


def test_the_page_offers_it_while_the_wait_is_longer_than_the_setting(site_of: Open) -> None:
    long, short = (
        site_of(total_active_users=100, calendar_after_minutes=1),
        site_of(id="s", total_active_users=100, calendar_after_minutes=30),
    )
    waiting = waits(long, 4)
    assert f">{ADD}</a>".encode() in body(waiting.visit())
    page = body(waits(short, 4).visit())
    assert b"download hidden></a>" in page
    update = (*NAVIGATES, (b"greenroom-update", b"fifo"))
    assert f'"calendar":"{ADD}"'.encode() in body(waiting.visit(headers=update))


def test_a_room_without_it_has_neither_link_nor_file(site_of: Open) -> None:
    site = site_of(total_active_users=100)
    waiting = waits(site, 4)
    assert b"calendar" not in body(waiting.visit())
    assert b"in line" in body(waiting.visit(query="greenroom=calendar"))
    update = (*NAVIGATES, (b"greenroom-update", b"fifo"))
    assert b"calendar" not in body(waiting.visit(headers=update))


def test_nobody_gets_an_entry_without_a_place(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    inside = full(site)
    assert isinstance(inside.visit(query="greenroom=calendar"), Answer | Forward)
    assert b"VCALENDAR" not in getattr(inside.visit(query="greenroom=calendar"), "body", b"")
    assert b"VCALENDAR" not in body(Browser(site).visit(query="greenroom=calendar"))


def test_where_places_do_not_move_the_link_is_the_page(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1, move_places=False)
    assert value(entry_of(waits(site, 4)), "URL") == "http://shop.example/"


def test_an_entry_changes_nothing_and_is_the_same_one_next_time(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    waiting = waits(site, 4)
    before = site.ledgers["r"].ledger.memory(site.clock.ms).places
    first, second = entry_of(waiting), entry_of(waiting)
    assert value(first, "UID") == value(second, "UID")
    assert site.ledgers["r"].ledger.memory(site.clock.ms).places == before


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_line_is_short_and_holds_no_other_line(tag: str) -> None:
    brand = NO_BRAND._replace(title=" · Tickets, Ltd; \\ \N{SNOWMAN}" * 9)
    url = "https://shop.example/" + "x" * 200
    made = calendar_entry(tag, brand, "h", "u", url, Estimate(0.0, 1.0, 1e12), 1_790_000_000_000)
    lines = made.split(b"\r\n")
    assert max(map(len, lines)) <= 75
    assert b"\n" not in b"".join(lines)
    whole = made.decode().replace("\r\n ", "")
    assert value(whole, "SUMMARY").count("\\;") == 9
    assert whole.count("BEGIN:VEVENT") == 1


def place_of(browser: Browser) -> int:
    found = re.search(rb"([0-9]+) in line", body(browser.visit()))
    assert found is not None
    return int(found[1])


def away(site: Site) -> tuple[Browser, Browser, str]:
    """Somebody with an entry who closes the page, the visitor behind, and the link's query."""
    full(site)
    absent = held(site)[0]
    behind = held(site)[0]
    for browser in (absent, behind):
        browser.wait()
        browser.visit()
    entry = entry_of(absent)
    assert "10 min after your turn" in value(entry, "DESCRIPTION")
    return absent, behind, value(entry, "URL").partition("?")[2]


def until_inside(site: Site, browser: Browser) -> None:
    for _ in range(500):
        site.advance(2_000)
        if isinstance(browser.visit(), Forward):
            return
    raise AssertionError("never admitted")


def test_the_page_may_be_closed_and_the_place_waits_for_ten_minutes_after_its_turn(
    site_of: Open,
) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    absent, behind, _ = away(site)
    for _ in range(20):  # longer than a place is kept otherwise, and nobody is held up
        site.advance(20_000)
        behind.visit()
    until_inside(site, behind)
    site.advance(500_000)
    assert isinstance(absent.visit(), Forward)


def test_the_page_of_a_visitor_with_an_entry_says_that_it_may_be_closed(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1, json_response_enabled=True)
    waiting = waits(site, 4)
    assert b"id=kept>Keep this" in body(waiting.visit())
    entry_of(waiting)
    for _ in range(3):
        waiting.wait()
        page = body(waiting.visit())
        assert b"id=kept>The time is an estimate. You may close the waiting page" in page
        assert b"up to 10 min after" in page
    update = (*NAVIGATES, (b"greenroom-update", b"fifo"))
    told = body(waiting.visit(headers=((b"accept", b"application/json"),)))
    assert b'"absentMinutes":10' in told
    assert b'"kept":"The time is an estimate. You may' in body(waiting.visit(headers=update))


def test_the_link_of_an_entry_brings_an_absent_visitor_back_on_another_device(
    site_of: Open,
) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    absent, behind, query = away(site)
    for _ in range(20):
        site.advance(20_000)
        behind.visit()
    until_inside(site, behind)
    site.advance(120_000)
    phone = Browser(site)
    phone.visit(query=query)
    assert body(phone.visit(method="POST", query=query)) == b""
    assert isinstance(phone.visit(), Forward)
    assert b"another device" in body(absent.visit())
    late = Browser(site)
    assert b"no longer works" in body(late.visit(method="POST", query=query))


def test_an_absent_visitor_who_is_too_late_is_a_newcomer(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1)
    absent, behind, query = away(site)
    for _ in range(20):
        site.advance(20_000)
        behind.visit()
    until_inside(site, behind)
    site.advance(600_000 + 15_000)
    full(site)
    assert b"no longer works" in body(Browser(site).visit(method="POST", query=query))
    waiting = held(site)[0]
    for browser in (waiting, absent):
        browser.visit()
        browser.wait()
    assert place_of(waiting) == 1
    assert place_of(absent) == 2


def test_a_room_whose_page_must_stay_open_says_so(site_of: Open) -> None:
    site = site_of(total_active_users=100, calendar_after_minutes=1, claim_minutes=0)
    waiting = waits(site, 4)
    assert "Keep the waiting page open" in entry_of(waiting)
