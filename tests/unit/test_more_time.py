"""More time for a visitor inside: what is said, what a press does, and that nobody else can press."""

import json
from pathlib import Path

import pytest
from decision_sites import Open, full, held, sites_in
from visitors import NAVIGATES, Browser, Reply, Site, header

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.room import LANGUAGES
from greenroom.pages.language import language
from greenroom.pages.session_page import WARN_S

SESSION = "greenroom=session"
JSON = ((b"accept", b"application/json"),)
WORDS = language("en-US").session
MINUTES = 5


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    opened = sites_in(tmp_path)

    def fixed(**changes: object) -> Site:
        return opened(
            **{
                "session_extensions": 2,
                "disable_session_renewal": True,
                "session_duration": MINUTES,
                "total_active_users": 2,
                "new_users_per_minute": 60,
            }
            | changes
        )

    return fixed


@pytest.fixture
def site(site_of: Open) -> Site:
    return site_of()


def answer(reply: Reply) -> Answer:
    assert isinstance(reply, Answer)
    return reply


def page(browser: Browser) -> str:
    return answer(browser.visit(query=SESSION)).body.decode()


def session(browser: Browser, method: str = "GET") -> dict[str, object]:
    reply = answer(browser.visit(method=method, query=SESSION, headers=JSON))
    found: dict[str, object] = json.loads(reply.body)["greenroom"]["session"]
    return found


def test_the_page_says_how_long_it_lasts_and_a_press_adds_a_session(site: Site) -> None:
    inside = full(site)
    assert f"<h1>{WORDS['left'].format(time='5 minutes')}</h1>" in page(inside)
    site.advance(200_000)
    reply = answer(inside.visit(query=SESSION))
    assert WORDS["soon"] in reply.body.decode()
    assert header(reply, b"Greenroom-Session") == b"ends=%d" % (site.clock.ms // 1000 + 100)
    pressed = answer(inside.visit(method="POST", query=SESSION))
    assert (pressed.status, header(pressed, b"Location")) == (303, b"?greenroom=session")
    assert b"Max-Age=300" in pressed.set_cookie
    assert session(inside)["secondsLeft"] == MINUTES * 60
    site.advance(290_000)
    assert isinstance(inside.visit(), Forward)
    assert site.errors == []


def test_answers_of_the_application_say_when_the_session_ends(site_of: Open) -> None:
    site = site_of()
    inside = full(site)
    site.advance(100_000)
    reply = inside.visit()
    assert isinstance(reply, Forward)
    ends = b"ends=%d" % (site.clock.ms // 1000 - 100 + MINUTES * 60)
    assert (reply.session, reply.lines) == (ends, b"Greenroom-Session: %b\r\n" % ends)
    without = site_of(id="w", session_extensions=0)
    reply = full(without).visit()
    assert isinstance(reply, Forward)
    assert reply.lines == b""


def test_looking_adds_nothing_and_admits_nobody(site: Site) -> None:
    inside = full(site)
    site.advance(100_000)
    for _ in range(5):
        assert session(inside)["secondsLeft"] == 200
    stranger = Browser(site)
    assert session(stranger) == session(stranger)
    assert session(stranger)["over"] is True
    assert session(stranger, "POST")["over"] is True
    assert stranger.jar == {}
    assert len(site.ledgers["r"].ledger.sessions.inside) == 1


def test_no_press_lasts_beyond_the_most_and_the_page_says_so(site: Site) -> None:
    inside = full(site)
    began_ms, ends_s = site.clock.ms, 0
    for _ in range(60):
        site.advance(20_000)
        found = session(inside, "POST")
        if found.get("over"):
            break
        ends_s = site.clock.ms // 1000 + int(str(found["secondsLeft"]))
    assert ends_s == began_ms // 1000 + 3 * MINUTES * 60
    assert site.clock.ms >= began_ms + 3 * MINUTES * 60_000
    assert f"<h1>{WORDS['over']}</h1>" in page(inside)


def test_a_press_that_adds_less_says_so_without_a_script(site: Site) -> None:
    inside = full(site)
    for _ in range(3):
        site.advance(299_000)
        reply = answer(inside.visit(method="POST", query=SESSION))
    assert reply.status == 200
    assert WORDS["last"] in reply.body.decode()


def test_nobody_can_press_for_somebody_else(site: Site) -> None:
    inside, other = full(site), full(site)
    site.advance(200_000)
    for headers in (
        ((b"sec-fetch-site", b"cross-site"),),
        ((b"origin", b"https://evil.example"),),
    ):
        inside.visit(method="POST", query=SESSION, headers=(*NAVIGATES, *headers))
        refused = inside.visit(method="POST", query=SESSION, headers=(*JSON, *headers))
        assert json.loads(answer(refused).body)["greenroom"]["session"]["all"] is False
    thief = Browser(site)
    for value in (b"x", b"A" * 108):
        thief.jar = dict.fromkeys(inside.jar, value)
        assert session(thief, "POST")["over"] is True
    session(other, "POST")
    assert session(inside)["secondsLeft"] == 100


def test_who_waits_is_given_no_session(site_of: Open) -> None:
    site = site_of(total_active_users=1)
    full(site)
    waiting, _ = held(site)
    waiting.wait()
    waiting.visit()
    assert session(waiting, "POST")["over"] is True
    assert len(site.ledgers["r"].ledger.line) == 1


def test_an_old_device_cannot_extend_what_has_moved(site: Site) -> None:
    old = full(site)
    url = json.loads(answer(old.visit(query="greenroom=move", headers=JSON)).body)
    new = Browser(site)
    query = url["greenroom"]["move"]["url"].partition("?")[2]
    assert answer(new.visit(method="POST", query=query)).status == 303
    site.advance(100_000)
    assert isinstance(new.visit(), Forward)
    assert session(old, "POST")["over"] is True
    assert session(new)["secondsLeft"] == 200
    assert session(new, "POST")["secondsLeft"] == MINUTES * 60


def test_a_session_that_is_over_stays_over(site: Site) -> None:
    inside = full(site)
    site.advance(300_000)
    assert session(inside, "POST")["over"] is True
    site.advance(1_000)
    full(site), full(site)
    assert len(site.ledgers["r"].ledger.sessions.inside) == 2


def test_where_requests_renew_a_press_is_one_of_them(site_of: Open) -> None:
    site = site_of(disable_session_renewal=False, session_extensions=1)
    inside = full(site)
    for _ in range(10):
        site.advance(280_000)
        found = session(inside, "POST")
        assert found["all"] is True
        assert int(str(found["secondsLeft"])) >= MINUTES * 60


def test_a_room_that_does_not_offer_it_leaves_the_query_to_the_application(site_of: Open) -> None:
    site = site_of(session_extensions=0)
    inside = full(site)
    for query in (SESSION, "greenroom=session.js"):
        assert isinstance(inside.visit(query=query), Forward)


def test_the_page_needs_no_script_and_only_the_site_may_frame_it(site: Site) -> None:
    inside = full(site)
    reply = answer(inside.visit(query=SESSION))
    assert b"<script" not in reply.body
    assert b"frame-ancestors 'self'" in header(reply, b"Content-Security-Policy")
    assert header(reply, b"Refresh") == b"%d" % (MINUTES * 60 - WARN_S)
    site.advance(200_000)
    assert header(answer(inside.visit(query=SESSION)), b"Refresh") == b"101"


def test_the_script_is_for_everybody_and_takes_no_place(site: Site) -> None:
    reply = answer(Browser(site).visit(query="greenroom=session.js"))
    assert header(reply, b"Content-Type").startswith(b"text/javascript")
    assert reply.set_cookie == b""
    assert b"aria-live" in reply.body


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_language_has_the_texts(site_of: Open, tag: str) -> None:
    inside = full(site_of(default_template_language=tag))
    words = language(tag)
    assert f"<h1>{words.session['left'].format(time=words.time(5))}</h1>" in page(inside)
