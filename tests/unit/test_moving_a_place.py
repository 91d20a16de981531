"""Continuing on another device: who gets the place, what the others are told, and that nobody else
gets it.
"""

import html
import json
import re
from pathlib import Path

import pytest
from decision_sites import Open, full, held, link_of, pressed, sites_in, text
from visitors import NAVIGATES, Browser, Site, header

from greenroom.admission.ledger.moving_places import hear
from greenroom.admission.messages.places import ASK, PlacesDown
from greenroom.decision.data_centers import DataCenters, home_of
from greenroom.decision.moving_place import MOVES_MAX, successor
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.record import replace
from greenroom.model.room import LANGUAGES
from greenroom.model.visit import HOME_BYTES
from greenroom.pages.language import language

UPDATE = ((b"greenroom-update", b"fifo"), (b"accept", b"application/json"))
JSON = ((b"accept", b"application/json"),)
WORDS = language("en-US").move


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return sites_in(tmp_path)(new_users_per_minute=5)


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    return sites_in(tmp_path)


def in_line(site: Site) -> Browser:
    """A visitor whose place is real."""
    full(site)
    browser, _ = held(site)
    browser.wait()
    assert b"You are in line" in browser.visit().body  # type: ignore[union-attr]
    return browser


def also_in_line(site: Site) -> Browser:
    browser, _ = held(site)
    browser.wait()
    browser.visit()
    return browser


def test_a_place_moves_by_one_press_and_the_old_page_says_so(site: Site) -> None:
    old, new, third = in_line(site), Browser(site), Browser(site)
    behind, _ = held(site)
    behind.wait()
    behind.visit()
    link = link_of(old)
    before = site.ledgers["r"].ledger.memory(site.clock.ms).places
    for _ in range(3):  # a mail scanner, a preview: looking changes nothing
        assert WORDS["ask"] in text(third.visit(query=link))
    assert third.jar == {}
    assert site.ledgers["r"].ledger.memory(site.clock.ms).places == before
    assert pressed(new, link)
    assert "1 in line" in text(new.visit())
    assert not pressed(third, link), "a link works once"
    assert json.loads(text(old.visit(headers=UPDATE))) == {"greenroom": {"moved": True}}
    assert WORDS["moved_lead"] in text(old.visit())
    assert len(site.ledgers["r"].ledger.line) == 2
    assert site.errors == []


def test_who_is_held_while_the_place_may_move_is_told_the_same_place(site: Site) -> None:
    in_line(site)
    second, sealer = also_in_line(site), Sealer(site.ring)
    ((name, cookie),) = second.jar.items()
    ticket = sealer.open(cookie, site.stage.id, site.clock.ms)
    assert ticket is not None
    told = replace(ticket, home=(2).to_bytes(HOME_BYTES))  # as several data centers note it
    second.jar[name] = sealer.seal(told, site.stage.id)
    ask = (ticket.id, successor(ticket.id), "oslo", 1, ASK)
    hear(site.ledgers["r"].ledger, PlacesDown((ask,)), site.clock.ms)
    assert "2 in line" in text(second.visit())


def test_a_session_moves_and_the_old_device_never_gets_in(site: Site) -> None:
    old, new = full(site), Browser(site)
    assert pressed(new, link_of(old))
    assert isinstance(new.visit(), Forward)
    assert WORDS["moved"] in text(old.visit())
    image = old.visit("/a.png", headers=((b"sec-fetch-dest", b"image"),))
    assert isinstance(image, Answer)
    assert image.status == 503
    assert len(site.ledgers["r"].ledger.sessions.inside) == 1


def test_a_session_gets_no_waiting_ticket_that_has_a_place_in_another_data_center(
    site: Site,
) -> None:
    site.decisions.data_centers = DataCenters.of("paris", ("paris", "oslo"))
    old, new = full(site), Browser(site)
    assert pressed(new, link_of(old))
    (cookie,) = new.jar.values()
    ticket = Sealer(site.ring).open(cookie, site.stage.id, site.clock.ms)
    assert ticket is not None
    assert (ticket.accepted_ms, ticket.home) == (site.clock.ms, home_of("paris"))
    assert isinstance(new.visit(), Forward)
    assert WORDS["moved"] in text(old.visit())


def test_the_old_device_takes_its_place_back_however_often_it_moved(site: Site) -> None:
    old, devices = in_line(site), [Browser(site) for _ in range(MOVES_MAX - 1)]
    holder = old
    for device in devices:
        assert pressed(device, link_of(holder))
        device.visit()
        holder = device
    reply = old.visit(method="POST", query="greenroom=move")
    assert isinstance(reply, Answer)
    assert reply.status == 303
    assert "1 in line" in text(old.visit())
    assert WORDS["moved"] in text(holder.visit())
    assert len(site.ledgers["r"].ledger.line) == 1


def test_a_place_is_found_though_its_page_slept(site: Site) -> None:
    old, new = in_line(site), Browser(site)
    link = link_of(old)
    site.advance(240_000)  # the ledger has forgotten a page that does not try
    assert len(site.ledgers["r"].ledger.line) == 0
    assert pressed(new, link)
    new.visit()
    assert len(site.ledgers["r"].ledger.line) + len(site.ledgers["r"].ledger.sessions.inside) == 1
    assert not isinstance(old.visit(), Forward)
    assert len(site.ledgers["r"].ledger.line) + len(site.ledgers["r"].ledger.sessions.inside) == 1


def test_a_code_lives_ten_minutes(site: Site) -> None:
    old = full(site)
    link = link_of(old)
    for _ in range(11):
        site.advance(59_000)
        old.visit()
    assert not pressed(Browser(site), link)
    assert pressed(Browser(site), link_of(old))


@pytest.mark.parametrize("code", ["", ".", ".x", "." + "A" * 108, ".{ticket}"])
def test_what_is_no_code_moves_nothing(site: Site, code: str) -> None:
    old = full(site)
    ticket = next(iter(old.jar.values())).decode()
    thief = Browser(site)
    reply = thief.visit(method="POST", query="greenroom=move" + code.format(ticket=ticket))
    assert isinstance(reply, Answer)
    assert reply.set_cookie == b""
    assert isinstance(old.visit(), Forward)


def test_a_code_is_no_ticket_and_counts_in_its_own_room_only(site: Site, site_of: Open) -> None:
    old = full(site)
    link = link_of(old)
    thief = Browser(site)
    thief.jar = {name: link.rpartition(".")[2].encode() for name in old.jar}
    assert not isinstance(thief.visit(), Forward)
    elsewhere = site_of(id="other")
    full(elsewhere)
    assert not pressed(Browser(elsewhere), link)


def test_no_other_site_can_press(site: Site) -> None:
    old, victim = full(site), Browser(site)
    link = link_of(old)
    for headers in (
        ((b"sec-fetch-site", b"cross-site"),),
        ((b"origin", b"https://evil.example"),),
    ):
        for query in (link, "greenroom=move"):
            reply = victim.visit(method="POST", query=query, headers=(*NAVIGATES, *headers))
            assert isinstance(reply, Answer)
            assert reply.set_cookie == b""
    assert isinstance(old.visit(), Forward)


def test_the_pages_need_no_script_and_may_not_be_framed(site: Site) -> None:
    old = in_line(site)
    link = link_of(old)
    for page in (old.visit(query="greenroom=move"), Browser(site).visit(query=link)):
        assert b"<script" not in page.body  # type: ignore[union-attr]
        policy = header(page, b"Content-Security-Policy")  # type: ignore[arg-type]
        assert b"frame-ancestors 'none'" in policy
        assert b"form-action 'self'" in policy
        assert header(page, b"Cache-Control") == b"private, no-store"  # type: ignore[arg-type]


def test_who_has_a_place_is_warned_before_taking_a_strangers(site: Site) -> None:
    stranger, victim = in_line(site), also_in_line(site)
    link = link_of(stranger)
    assert WORDS["own"] in text(victim.visit(query=link))
    assert WORDS["own"] not in text(Browser(site).visit(query=link))
    assert WORDS["own"] not in text(stranger.visit(query=link)), "it is the stranger's own"
    ledger = site.ledgers["r"].ledger
    assert len(ledger.line) == 2
    assert pressed(victim, link)
    assert "1 in line" in text(victim.visit())
    assert len(ledger.line) == 1, "the other place is given up, as the page said"
    assert site.errors == []


def test_who_is_inside_is_warned_too_and_leaves_the_old_session(site_of: Open) -> None:
    site = site_of(new_users_per_minute=5, total_active_users=2)
    stranger = full(site)
    link = link_of(stranger)
    victim = Browser(site)
    site.advance(60_000)
    assert isinstance(victim.visit(), Forward)
    assert WORDS["own"] in text(victim.visit(query=link))
    assert len(site.ledgers["r"].ledger.sessions.inside) == 2
    assert pressed(victim, link)
    assert isinstance(victim.visit(), Forward)
    assert len(site.ledgers["r"].ledger.sessions.inside) == 1


def test_whose_place_moved_away_is_not_warned(site: Site) -> None:
    old, other = in_line(site), also_in_line(site)
    assert pressed(Browser(site), link_of(old))
    assert WORDS["own"] not in text(old.visit(query=link_of(other)))


@pytest.mark.parametrize(
    ("browser", "in_app"),
    [
        (b"Mozilla/5.0 (iPhone) Mobile/15E148 [FBAN/FBIOS;FBAV/96.0.0.45.70;FBLC/de_DE]", True),
        (b"Mozilla/5.0 (Linux; Android 9; SM-G950F Build/P; wv) Chrome/88.0 Mobile", True),
        (b"Mozilla/5.0 (iPhone) Mobile/15E148 Safari Line/15.12.1", True),
        (b"Mozilla/5.0 (iPhone) Mobile/15E148 Instagram 300.0.0.1 (iPhone)", True),
        (b"Mozilla/5.0 (iPhone) Version/18.0 Mobile/15E148 Safari/604.1", False),
        (b"Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/120.0 Mobile Safari/537.36", False),
        (b"Online/1.0", False),
    ],
)
def test_the_browser_of_another_app_is_sent_to_the_visitors_own(
    site: Site, browser: bytes, in_app: bool
) -> None:
    visitor = in_line(site)
    headers = (*NAVIGATES, (b"user-agent", browser))
    page = text(visitor.visit(query="greenroom=move", headers=headers))
    assert (f"<h1>{WORDS['app']}</h1>" in page) is in_app
    assert ("data:image/svg+xml;" in page) is not in_app
    query = re.search(r'<a href="http://shop\.example/\?([^"]+)"', page)
    assert query is not None
    assert pressed(Browser(site), html.unescape(query[1]))


@pytest.mark.parametrize("more", [(), ((b"sec-fetch-dest", b"empty"),)])
def test_programs_ask_for_the_address(site: Site, more: tuple[tuple[bytes, bytes], ...]) -> None:
    """A native application sends none of a browser's headers."""
    old = full(site)
    answer = json.loads(text(old.visit(query="greenroom=move", headers=(*JSON, *more))))
    url = answer["greenroom"]["move"]["url"]
    assert pressed(Browser(site), url.partition("?")[2])


def test_a_room_may_switch_it_off(site_of: Open) -> None:
    site = site_of(move_places=False)
    old = full(site)
    assert isinstance(old.visit(query="greenroom=move"), Forward)
    browser, page = held(site)
    assert b"greenroom=move" not in page.body
    assert b"greenroom=move" not in browser.visit().body  # type: ignore[union-attr]


def test_while_nothing_can_be_written_nothing_moves(site: Site) -> None:
    old = full(site)
    link = link_of(old)
    site.ledgers["r"].ledger.halted = True
    reply = Browser(site).visit(method="POST", query=link)
    assert isinstance(reply, Answer)
    assert (reply.status, reply.set_cookie) == (503, b"")
    assert isinstance(old.visit(), Forward)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_language_has_the_pages(site_of: Open, tag: str) -> None:
    site = site_of(default_template_language=tag)
    page = text(full(site).visit(query="greenroom=move"))
    assert f"<h1>{language(tag).move['label']}</h1>" in page
    assert "data:image/svg+xml" in page
