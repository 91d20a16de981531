"""The built-in page: which view is shown, what it says, how large it is, and the headers it comes
with.
"""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from greenroom.errors import InvalidConfig
from greenroom.model.answer import AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.room import LANGUAGES, Room
from greenroom.model.visit import CHANGES, PLACE_KEPT_MS, Estimate, Held
from greenroom.pages import (
    BUILT_IN_HEADERS,
    CUSTOM_HEADERS,
    JSON_HEADERS,
    compile_page,
    left_page,
    origin_error_page,
)
from greenroom.pages.builtin import LAYOUTS, view_of
from greenroom.pages.language import FALLBACK, available, language

ROOM = {"name": "a", "host": "*", "total_active_users": 1, "new_users_per_minute": 1}
PAGE = compile_page(Room(**ROOM), moves=True)
NOW_MS = 1_790_000_000_000
PAGE_BYTES_MAX = 9_900
"""The page goes out to everybody who waits, often all at once."""
DRAW_BYTES_MAX = 700
"""What a visitor who takes part in a draw is told besides."""


def held(**changes: Any) -> Held:
    said: dict[str, Any] = {
        "now_ms": NOW_MS,
        "method": "fifo",
        "last_updated_ms": NOW_MS,
        "refresh_s": 20,
        "next_try_s": 20,
        "estimate": Estimate(300, 600, 900),
        "position": 1_234_567,
        "ahead": 1_234_566,
        "waiting": 5_000_000,
        "joined_ms": NOW_MS - 400_000,
        "in_line": True,
    }
    return Held(**{**said, **changes})


OUTSIDE: dict[str, Any] = {"position": 0, "ahead": 0, "in_line": False}
PREQUEUE = {"event_active": True, "event_prequeueing": True, "event_start_ms": NOW_MS + 720_000}
STATES = {
    "fifo": held(),
    "random": held(method="random"),
    "placing": held(**OUTSIDE),
    "paused": held(queue_all=True),
    "prequeue": held(**PREQUEUE),
    "shuffle": held(
        **PREQUEUE, shuffle_at_event_start=True, receipt="0f" * 16, draw_commitment="c5" * 32
    ),
    "drawn": held(receipt="0f" * 16, draw_commitment="c5" * 32, drawn_place=17, drawn_size=1_234),
    "trouble": held(storage_failed=True),
    "trouble_slow": held(origin_stops="slow"),
    "full": held(queue_full=True, **OUTSIDE),
    "closed": Held(now_ms=NOW_MS, method="reject", last_updated_ms=NOW_MS, refresh_s=0),
}


class Elements(HTMLParser):
    """Texts by id, and the ids of what is hidden by itself or by the row around it."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.attributes: dict[str, dict[str, str | None]] = {}
        self._at, self._row_hidden = "", False
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "div":
            self._row_hidden = "hidden" in found
        self._at = found.get("id") or (self._at if tag == "time" else tag)
        self.attributes[self._at] = found
        if "hidden" in found or self._row_hidden:
            self.hidden.add(self._at)

    def handle_data(self, data: str) -> None:
        self.texts[self._at] = self.texts.get(self._at, "") + data

    def shown(self, name: str) -> str:
        return "" if name in self.hidden else self.texts.get(name, "").strip()


def test_every_view_has_a_layout_and_an_example_here() -> None:
    assert set(LAYOUTS) == set(STATES)


@pytest.mark.parametrize("view", LAYOUTS)
def test_a_state_is_shown_by_its_view(view: str) -> None:
    assert view_of(STATES[view]) == view
    assert json.loads(PAGE.json(STATES[view]))["greenroom"]["words"]["view"] == view


@pytest.mark.parametrize(
    ("changes", "view"),
    [
        ({"queue_all": True, **PREQUEUE}, "paused"),
        ({"queue_all": True, "method": "reject"}, "paused"),
        ({"method": "reject", **PREQUEUE}, "prequeue"),
        ({"method": "passthrough", "queue_all": True}, "paused"),
        ({"storage_failed": True, **OUTSIDE}, "trouble"),
        ({"origin_stops": "unhealthy"}, "trouble"),
        ({"origin_stops": "slow"}, "trouble_slow"),
        ({"origin_stops": "unhealthy", "queue_all": True}, "paused"),
        ({"queue_full": True}, "fifo"),
        ({"method": "something new"}, "fifo"),
    ],
)
def test_when_several_reasons_hold_the_strongest_is_told(
    changes: dict[str, Any], view: str
) -> None:
    assert view_of(held(**changes)) == view


def test_while_the_origin_is_unhealthy_those_in_line_see_that_their_place_is_kept() -> None:
    page = Elements(PAGE.html(held(origin_stops="unhealthy")))
    assert (page.shown("heading"), page.shown("hero"), page.shown("ahead")) == (
        "A short pause on our side",
        "1,234,567",
        "1,234,566",
    )
    assert page.shown("lead").endswith("Nothing is lost.")
    assert page.shown("wait") == "", "nobody can say how long it takes"


@pytest.mark.parametrize("changes", [{"queue_all": True}, {"origin_stops": "unhealthy"}])
def test_a_place_that_an_update_brings_has_its_label(changes: dict[str, Any]) -> None:
    """The updates of a view have only what differs: the style shows the label with the place."""
    page = PAGE.html(held(in_line=False, position=0, **changes))
    assert b"<p id=label>Your place" in page
    assert b"<p id=hero hidden>" in page
    assert b"#label:has(+[hidden]){display:none}" in page.replace(b"+ ", b"+")


def test_the_line_says_place_people_ahead_wait_and_time() -> None:
    page = Elements(PAGE.html(held()))
    shown = {
        name: page.shown(name)
        for name in (
            "title",
            "heading",
            "hero",
            "ahead",
            "wait",
            "chance",
            "waiting",
            "position",
            "updated",
        )
    }
    assert shown == {
        "title": "1,234,567 in line",
        "heading": "You are in line",
        "hero": "1,234,567",
        "ahead": "1,234,566",
        "wait": "about 10 minutes",
        "chance": "",
        "waiting": "",
        "position": "",
        "updated": "14:13:20 UTC",
    }
    assert page.attributes["updated"]["datetime"] == "2026-09-21T14:13:20Z"
    assert page.attributes["bar"]["value"] == "40"
    assert page.attributes["room"]["data-next"] == "20"


def test_a_draw_says_a_range_and_a_chance_but_no_place() -> None:
    page = Elements(PAGE.html(held(method="random")))
    assert page.shown("hero") == "5 to 15 minutes"
    assert page.shown("chance") == "about 1 in 44"
    assert page.shown("waiting") == "5,000,000"
    assert "1,234,567" not in PAGE.html(held(method="random")).decode()
    assert "value" not in page.attributes["bar"]


def test_a_line_says_how_long_it_takes_at_most() -> None:
    page = Elements(PAGE.html(held(estimate=Estimate(600, 720, 900, 1_080))))
    assert page.shown("wait") == "about 12 minutes (18 at most)"


def test_an_unknown_wait_is_said_as_unknown() -> None:
    assert Elements(PAGE.html(held(estimate=None))).shown("wait") == "not known yet"
    page = Elements(PAGE.html(held(estimate=None, method="random")))
    assert page.shown("hero") == "not known yet"
    assert page.shown("chance") == ""


@pytest.mark.parametrize(
    ("ahead", "minutes", "said"),
    [
        (9, 0, "not known yet"),
        (10, 1, "at least 1 minute"),
        (29, 2, "at least 2 minutes"),
        (20_000, 2_000, "more than a day"),
    ],
)
def test_an_unknown_wait_in_a_known_line_is_at_least_what_the_rate_limit_makes_of_it(
    ahead: int, minutes: int, said: str
) -> None:
    state = held(estimate=None, position=ahead + 1, ahead=ahead, least_minutes=ahead // 10)
    assert Elements(PAGE.html(state)).shown("wait") == said
    told = json.loads(PAGE.json(state))
    assert (told["greenroom"]["waitAtLeast"], told["cfWaitingRoom"]["waitTimeKnown"]) == (
        minutes,
        False,
    )
    assert json.loads(PAGE.json(held(least_minutes=3)))["greenroom"]["waitAtLeast"] == 0, (
        "there is an estimate"
    )


def test_before_the_ticket_came_back_no_place_is_claimed() -> None:
    page = Elements(PAGE.html(STATES["placing"]))
    assert page.shown("heading") == "You are joining the line"
    assert "cookies" in page.shown("next")
    assert [page.shown(name) for name in ("hero", "label", "ahead")] == ["", "", ""]


def test_only_a_closed_room_offers_to_try_by_hand() -> None:
    for view, state in STATES.items():
        assert bool(Elements(PAGE.html(state)).shown("again")) is (view == "closed")


@pytest.mark.parametrize("view", LAYOUTS)
def test_page_and_update_use_the_same_words(view: str) -> None:
    page, words = (
        Elements(PAGE.html(STATES[view])),
        json.loads(PAGE.json(STATES[view]))["greenroom"]["words"],
    )
    assert page.attributes["room"]["class"] == words["layout"]
    assert {name: page.shown(name) for name in words if name not in ("view", "layout")} == {
        name: text for name, text in words.items() if name not in ("view", "layout")
    }


@pytest.mark.parametrize("view", LAYOUTS)
def test_a_page_is_small_and_names_no_other_address(view: str) -> None:
    page = PAGE.html(STATES[view])
    assert len(page) <= PAGE_BYTES_MAX + (DRAW_BYTES_MAX if b"id=draw" in page else 0)
    assert set(re.findall(rb"https?://[^'\"\s]+", page)) == {b"http://www.w3.org/2000/svg"}
    assert b"{" not in re.sub(
        rb"<(style|script)>.*?</\1>|data-offline=\"[^\"]*\"", b"", page, flags=re.S
    )


def test_a_page_that_looks_again_after_the_start_counts_down_to_nothing() -> None:
    for seconds, texts in (
        (21, {"title": "Starting in 1 minute", "label": "Starts in", "hero": "1 minute"}),
        (20, {"title": "It starts soon", "label": "", "hero": ""}),
    ):
        state = held(**{**PREQUEUE, "event_start_ms": NOW_MS + seconds * 1000})
        said = json.loads(PAGE.json(state))["greenroom"]["words"]
        assert texts.items() <= said.items()
        shown = Elements(PAGE.html(state))
        assert ("label" in shown.hidden, "hero" in shown.hidden) == (seconds == 20, seconds == 20)


def test_only_those_who_take_part_in_a_draw_are_told_of_it() -> None:
    before, after = (
        STATES["shuffle"],
        held(receipt="0f" * 16, draw_commitment="c5" * 32, drawn_place=17, drawn_size=1_234),
    )
    assert b"id=draw" not in PAGE.html(STATES["prequeue"])
    page = PAGE.html(before).decode()
    assert "<code id=receipt>" + "0f" * 16 in page
    assert "<dd id=seal>" + "c5" * 32 in page
    assert "<div hidden><dt>Place drawn<dd id=drawn></div>" in page
    assert "<div><dt>Place drawn<dd id=drawn>17 of 1,234</div>" in PAGE.html(after).decode()
    said = json.loads(PAGE.json(after))["greenroom"]["words"]
    assert (said["drawn"], said["heading"], said["lead"][-14:]) == (
        "17 of 1,234",
        "You are in line",
        "in that order.",
    )


def policy(headers: AnswerHeaders) -> dict[str, str]:
    line = (headers.get(b"Content-Security-Policy") or b"").decode()
    return {
        name: rest for name, _, rest in (part.strip().partition(" ") for part in line.split(";"))
    }


@pytest.mark.parametrize("html", ["", "<p>{{waitTime}}</p>"])
@pytest.mark.parametrize("language", [None, b"de-DE"])
def test_no_site_may_frame_the_waiting_page_unless_the_room_names_it(
    html: str, language: bytes | None
) -> None:
    room = {**ROOM, "custom_page_html": html, "follow_accept_language": True}
    alone = compile_page(Room(**room)).speaking(language)
    assert policy(alone.shown(held(), b"gzip")[0])["frame-ancestors"] == "'none'"
    sites = "'self' https://partner.example https://*.shop.example:8443"
    framed = compile_page(Room(**room, frame_ancestors=sites)).speaking(language)
    assert policy(framed.shown(held(), b"gzip")[0])["frame-ancestors"] == sites
    assert (
        len([name for name, _ in framed.html_headers.pairs if name == b"Content-Security-Policy"])
        == 1
    )


@pytest.mark.parametrize(
    "sites",
    [
        "none",
        "'none'",
        "partner.example",
        "'self'; script-src *",
        "https://a.example\r\nX: y",
        "'self'  *",
        " *",
        "https://",
        "https://a/b",
        "data:",
    ],
)
def test_what_is_no_list_of_sites_is_refused(sites: str) -> None:
    with pytest.raises(InvalidConfig):
        Room(**ROOM, frame_ancestors=sites)


@pytest.mark.parametrize(
    "page", [*(PAGE.html(state) for state in STATES.values()), left_page(), origin_error_page(502)]
)
def test_the_policy_names_every_inline_style_and_script_by_hash_and_allows_nothing_else(
    page: bytes,
) -> None:
    allowed = policy(BUILT_IN_HEADERS)
    assert allowed["default-src"] == "'none'"
    assert b"style=" not in page
    assert re.search(rb"\son\w+=", page) is None
    for tag, directive in ((b"style", "style-src"), (b"script", "script-src")):
        for inside in re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), page, re.S):
            assert (
                allowed[directive]
                == f"'sha256-{base64.b64encode(hashlib.sha256(inside).digest()).decode()}'"
            )


@pytest.mark.parametrize(
    "headers", [BUILT_IN_HEADERS, CUSTOM_HEADERS, JSON_HEADERS], ids=["built-in", "custom", "JSON"]
)
def test_every_head_keeps_the_answer_out_of_caches_and_search_engines(
    headers: AnswerHeaders,
) -> None:
    assert {
        (b"Cache-Control", b"private, no-store"),
        (b"Vary", b"Accept, Cookie, Greenroom-Update"),
        (b"X-Robots-Tag", b"noindex"),
        (b"X-Content-Type-Options", b"nosniff"),
    } <= set(headers.pairs)
    assert not any(b"frame" in value for _, value in headers.pairs)


def test_the_promise_of_five_minutes_is_the_one_that_is_kept() -> None:
    assert PLACE_KEPT_MS == 5 * 60_000


def test_pages_that_stand_alone_say_what_to_do() -> None:
    assert b"Join again" in left_page()
    for status in (502, 503, 504):
        assert b"tries again by itself" in origin_error_page(status)
        assert b"may or may not have arrived" in origin_error_page(status, repeatable=False)
        assert b"<a " not in origin_error_page(status, repeatable=False)
    assert len({origin_error_page(status) for status in (502, 503, 504)}) == 3


def test_a_language_that_no_one_wrote_yet_is_shown_in_the_fallback() -> None:
    assert FALLBACK in available()
    assert set(available()) <= set(LANGUAGES)
    for tag in LANGUAGES:
        page = compile_page(Room(**ROOM, default_template_language=tag)).html(held())
        assert f"<html lang={tag if tag in available() else FALLBACK} ".encode() in page


@pytest.mark.parametrize("tag", available())
def test_a_language_file_has_every_word_and_says_which_way_it_is_read(tag: str) -> None:
    words = language(tag)
    assert words.tag == tag
    assert words.dir in ("ltr", "rtl")
    assert set(words.views) == set(LAYOUTS) - {"drawn"}
    reference = language(FALLBACK)
    for part in ("labels", "script", "alone", "changes"):
        assert set(getattr(words, part)) == set(getattr(reference, part))
    assert set(words.changes) == set(CHANGES)
    assert words.at_most(12, 18) != words.wait(12) != words.at_most(12, 90)
    page = compile_page(Room(**ROOM, default_template_language=tag))
    for state in STATES.values():
        assert page.html(state)


@pytest.mark.parametrize(
    ("change", "words"),
    [("slower", "busier than expected"), ("faster", "faster"), ("stale", "out of date"), ("", "")],
)
def test_an_estimate_that_changed_much_says_why(change: str, words: str) -> None:
    for method in ("fifo", "random"):
        page = Elements(
            PAGE.html(held(method=method, estimate=Estimate(300, 600, 900, 1100, change)))
        )
        assert words in page.shown("change")
        assert bool(page.shown("change")) is bool(change)


AFTER = {
    "position": 42,
    "ahead": 41,
    "waiting": 4_000_000,
    "estimate": Estimate(30, 60, 90, 120, "faster"),
    "last_updated_ms": NOW_MS + 20_000,
}
UPDATE_BYTES_MAX = 300
"""News of a line, in English, in a waiting room that millions poll."""


@pytest.mark.parametrize("tag", available())
@pytest.mark.parametrize("view", [view for view in STATES if not STATES[view].receipt])
def test_news_for_a_page_that_shows_the_view_complete_what_it_shows(view: str, tag: str) -> None:
    page, before = compile_page(Room(**ROOM, default_template_language=tag)), STATES[view]
    after = replace(before, **(AFTER if before.in_line else {"waiting": 7}))
    shown, news = (
        json.loads(page.update(state, view.encode()))["greenroom"] for state in (before, after)
    )
    assert "view" not in news["words"]
    everything = json.loads(page.json(after))["greenroom"]["words"]
    assert json.loads(page.json(before))["greenroom"]["words"] | news["words"] == everything
    assert (news["nextTrySeconds"], news["updatedMs"], shown["updatedMs"]) == (
        after.next_try_s,
        after.last_updated_ms,
        NOW_MS,
    )
    assert news["joinedMs"] == (after.joined_ms if after.in_line else 0)


@pytest.mark.parametrize("view", STATES)
def test_news_for_a_page_that_shows_another_view_or_no_receipt_have_all_words(view: str) -> None:
    other = "random" if view == "fifo" else "fifo"
    for shown in (other, view) if STATES[view].receipt else (other,):
        words = json.loads(PAGE.update(STATES[view], shown.encode()))["greenroom"]["words"]
        assert words == json.loads(PAGE.json(STATES[view]))["greenroom"]["words"]


@pytest.mark.parametrize("value", [b"1", b"", b"leave", b"FIFO", b"\xff", b"nothing"])
def test_an_update_that_names_no_view_is_what_is_published(value: bytes) -> None:
    assert PAGE.update(STATES["fifo"], value) == PAGE.json(STATES["fifo"])


def test_the_page_says_which_view_it_shows_and_news_are_short() -> None:
    for view, state in STATES.items():
        assert f" data-view={view} ".encode() in PAGE.html(state)
    assert len(PAGE.update(STATES["fifo"], b"fifo")) <= UPDATE_BYTES_MAX
    assert json.loads(PAGE.update(held(estimate=None), b"fifo"))["greenroom"]["progress"] == -1
