"""What a visitor sees and keeps when the origin fails, and how the visitor comes in again."""

import json
import re
from pathlib import Path

import pytest
from decision_sites import Open, sites_in
from visitors import NAVIGATES, Browser, Reply, Site, header

from greenroom.admission.ledger.failures import TURN_KEPT_MS
from greenroom.decision.kept_turn import FailedDocument
from greenroom.decision.observer import Decided
from greenroom.decision.render import ORIGIN_RETRY_S
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.pages.builtin import hash_of, source

JSON = ((b"accept", b"application/json"),)
MINUTES = 5
SESSION_MS = MINUTES * 60_000


@pytest.fixture
def site_of(tmp_path: Path) -> Open:
    opened = sites_in(tmp_path)

    def small(**changes: object) -> Site:
        return opened(
            **{"session_duration": MINUTES, "total_active_users": 1, "new_users_per_minute": 60}
            | changes
        )

    return small


def forward(reply: Reply) -> Forward:
    assert isinstance(reply, Forward), reply
    return reply


def fails(browser: Browser, headers: tuple[tuple[bytes, bytes], ...] = NAVIGATES) -> Answer:
    """The origin does not answer this visitor, who is inside."""
    found: list[Answer] = []
    arrival = browser.arrival(headers=headers)
    allowed = forward(browser.site.ask(arrival))
    FailedDocument(allowed, browser.site.decisions).answer(502, arrival, found.append)
    (answer,) = found
    browser.keep(answer)
    return answer


def inside(site: Site, client: str = "192.0.2.1") -> Browser:
    browser = Browser(site, client=client)
    while not isinstance(browser.visit(), Forward):
        browser.wait()
    return browser


def test_the_page_says_until_when_the_turn_is_safe(site_of: Open) -> None:
    site = site_of()
    visitor = inside(site)
    answer = fails(visitor)
    safe_ms = site.clock.ms + SESSION_MS + TURN_KEPT_MS
    found = re.search(rb'Your turn is safe until <time datetime="([^"]+)">', answer.body)
    assert found is not None
    assert abs(_ms(found[1].decode()) - safe_ms) < 66_000
    policy = header(answer, b"Content-Security-Policy").decode()
    assert hash_of(source("safe.js")) in policy
    in_json = fails(visitor, ((b"accept", b"application/json"), *NAVIGATES[1:]))
    said = json.loads(in_json.body)
    assert abs(_ms(said["turnSafeUntil"]) - safe_ms) < 6_000
    assert said["retryAfter"] == int(header(in_json, b"Retry-After"))


def _ms(said: str) -> int:
    from datetime import datetime

    return int(datetime.fromisoformat(said).timestamp() * 1000)


def test_the_cookie_outlives_the_session(site_of: Open) -> None:
    answer = fails(inside(site_of()))
    lasts_s = int(re.findall(rb"Max-Age=(\d+)", answer.set_cookie)[0])
    assert (SESSION_MS + TURN_KEPT_MS) // 1000 <= lasts_s <= (SESSION_MS + TURN_KEPT_MS) // 1000 + 6


def test_retries_of_many_are_spread(site_of: Open) -> None:
    site = site_of(total_active_users=100, new_users_per_minute=100)
    seconds = [
        int(header(fails(inside(site, f"192.0.2.{number}")), b"Refresh")) for number in range(64)
    ]
    assert min(seconds) >= ORIGIN_RETRY_S
    assert len(set(seconds)) >= 6
    assert max(seconds.count(second) for second in seconds) <= 24


def test_who_comes_back_after_the_session_is_in_again_and_counted(site_of: Open) -> None:
    site = site_of()
    visitor = inside(site)
    fails(visitor)
    site.advance(SESSION_MS + 60_000)
    assert forward(visitor.visit()).reentered
    assert site.events_seen[-1].decided is Decided.REENTERED
    assert site.counted.of(site.rooms[0].id)["reentered"] == 1
    assert not forward(visitor.visit()).reentered
    assert site.events_seen[-1].decided is Decided.ACTIVE


def test_who_comes_back_is_first_in_line_and_the_limit_is_exact(site_of: Open) -> None:
    site = site_of()
    visitor = inside(site)
    fails(visitor)
    site.advance(SESSION_MS + 6_000)
    other, waits = inside(site, "192.0.2.2"), Browser(site, client="192.0.2.3")
    waits.visit()
    waits.wait()
    waits.visit()
    held = visitor.visit()
    assert isinstance(held, Answer)
    assert site.ledgers[site.rooms[0].id].gauges().active == 1
    other.visit(method="POST", query="greenroom=leave")
    for _ in range(20):
        site.advance(1_000)
        if isinstance(waits.visit(), Forward):
            raise AssertionError("before the visitor whom the origin failed")
        if isinstance(visitor.visit(), Forward):
            break
    assert site.events_seen[-1].decided is Decided.REENTERED


@pytest.mark.parametrize("how", ["never failed", "too late", "left", "revoked"])
def test_nobody_else_is_let_in_by_an_old_ticket(site_of: Open, how: str) -> None:
    site = site_of(enabled_origin_commands=("revoke",))
    visitor = inside(site)
    if how != "never failed":
        fails(visitor)
    kept = dict(visitor.jar)
    if how == "left":
        visitor.visit(method="POST", query="greenroom=leave")
    elif how == "revoked":
        site.decisions.obey(forward(visitor.visit()), b"revoke")
    site.advance(SESSION_MS + (TURN_KEPT_MS + 10_000 if how == "too late" else 10_000))
    visitor.jar = dict(kept)
    inside(site, "192.0.2.2")
    before = site.counted.of(site.rooms[0].id).get("reentered", 0)
    assert isinstance(visitor.visit(), Answer)
    assert visitor.jar != kept, "a new visitor"
    assert before == 0


def test_a_ticket_that_is_used_twice_is_one_visitor(site_of: Open) -> None:
    """The same old ticket in two browsers, which come back in one moment."""
    site = site_of(total_active_users=5)
    visitor = inside(site)
    fails(visitor)
    copy = Browser(site, client="192.0.2.9")
    copy.jar = dict(visitor.jar)
    site.advance(SESSION_MS + 6_000)
    forward(visitor.visit())
    forward(copy.visit())
    assert site.ledgers[site.rooms[0].id].gauges().active == 1
    assert site.counted.of(site.rooms[0].id)["reentered"] == 1


def link_of(visitor: Browser) -> str:
    """The query of a fresh link; empty: none is offered."""
    reply = visitor.visit(query="greenroom=move")
    assert isinstance(reply, Answer)
    found = re.search(rb"greenroom=move\.[\w.~-]+", reply.body)
    return found[0].decode() if found else ""


@pytest.mark.parametrize("made_ms", [SESSION_MS - 60_000, SESSION_MS + 6_000, SESSION_MS + 600_000])
def test_a_kept_turn_moves_to_another_device(site_of: Open, made_ms: int) -> None:
    """`made_ms`: when the link is made; the press comes when the session is over."""
    site = site_of(total_active_users=2)
    visitor, device = inside(site), Browser(site, client="192.0.2.9")
    fails(visitor)
    site.advance(made_ms)
    link = link_of(visitor)
    site.advance(max(0, SESSION_MS + 6_000 - made_ms))
    pressed = device.visit(method="POST", query=link)
    assert isinstance(pressed, Answer)
    assert pressed.status == 303
    assert forward(device.visit()).reentered
    for _ in range(3):
        again = visitor.visit()
        assert isinstance(again, Answer)
        assert again.status == 200
        assert b"moved" in visitor.visit(headers=JSON).body  # type: ignore[union-attr]
        site.advance(60_000)
    assert site.ledgers[site.rooms[0].id].gauges().active == 1
    assert site.counted.of(site.rooms[0].id)["reentered"] == 1


def test_the_first_device_takes_back_the_turn_of_a_session_that_moved(site_of: Open) -> None:
    site = site_of(total_active_users=2)
    visitor, device = inside(site), Browser(site, client="192.0.2.9")
    device.visit(method="POST", query=link_of(visitor))
    fails(device)
    site.advance(SESSION_MS + 6_000)
    assert isinstance(visitor.visit(), Answer)
    back = visitor.visit(method="POST", query="greenroom=move")
    assert isinstance(back, Answer)
    assert back.status == 303
    assert forward(visitor.visit()).reentered
    assert isinstance(device.visit(), Answer)


def test_no_link_is_offered_when_the_turn_is_over(site_of: Open) -> None:
    site = site_of(total_active_users=2)
    visitor = inside(site)
    fails(visitor)
    link = link_of(visitor)
    assert link
    site.advance(SESSION_MS + 6_000)
    for _ in range(9):
        site.advance(TURN_KEPT_MS // 9)
    assert link_of(visitor) == ""
    assert not Browser(site, client="192.0.2.9").visit(method="POST", query=link).set_cookie  # type: ignore[union-attr]
