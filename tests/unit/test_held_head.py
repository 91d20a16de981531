"""HEAD without a ticket, where visitors wait: the answer is that of GET without its body, and takes
no place.
"""

import json
from pathlib import Path

import pytest
from admission_world import small_room
from visitors import NAVIGATES, Browser, Site

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer

NUMBERS_OF_SECONDS = frozenset((b"Refresh", b"Retry-After"))
"""Drawn for every answer of its own, so that a crowd does not come back at once."""

CRAWLER = (b"user-agent", b"Mozilla/5.0 (compatible; Googlebot/2.1)")
FRAME = (
    (b"sec-fetch-dest", b"iframe"),
    (b"sec-fetch-mode", b"navigate"),
    (b"sec-fetch-site", b"cross-site"),
)
REQUESTS = {
    "a page": NAVIGATES,
    "a page, compressed": (*NAVIGATES, (b"accept-encoding", b"gzip")),
    "a page in German": (*NAVIGATES, (b"accept-language", b"de")),
    "a program": ((b"accept", b"*/*"),),
    "a crawler": (*NAVIGATES, CRAWLER),
    "JSON": ((b"accept", b"application/json"),),
    "JSON of a script": ((b"accept", b"application/json"), (b"sec-fetch-dest", b"empty")),
    "an image": ((b"sec-fetch-dest", b"image"),),
    "a frame on another site": FRAME,
    "a prefetch": (*NAVIGATES, (b"sec-purpose", b"prefetch")),
    "a preview of a link": (*NAVIGATES, (b"user-agent", b"Slackbot 1.0")),
    "the page's own update": ((b"greenroom-update", b"1"),),
}
ROOMS = {
    "as it is": {},
    "answering JSON": {"json_response_enabled": True},
    "with a status of its own": {"queueing_status_code": 429},
    "with one status for all": {"same_status_for_all": True, "queueing_status_code": 202},
    "without provisional sessions": {"provisional_sessions": False},
    "that holds everybody": {"queue_all": True},
    "that rejects": {"queueing_method": "reject"},
    "with a page of its own": {"custom_page_html": "<p>{{waitTime}}</p>"},
    "that may be embedded": {"frame_ancestors": "https://partner.example"},
    "in random order": {"queueing_method": "random"},
    "with a table of the line": {"line_table": True},
}


def told(answer: object) -> tuple[int, set[tuple[bytes, bytes]], int]:
    """Status, headers and the length of what is told."""
    assert isinstance(answer, Answer)
    pairs = {
        (name, b"" if name in NUMBERS_OF_SECONDS else value) for name, value in answer.headers.pairs
    }
    return answer.status, pairs, len(answer.body)


@pytest.mark.parametrize("changes", ROOMS.values(), ids=ROOMS.keys())
def test_a_head_is_answered_like_its_get_and_takes_no_place(
    changes: dict[str, object], tmp_path: Path
) -> None:
    site = Site(
        tmp_path, small_room(**{"total_active_users": 1, "new_users_per_minute": 1, **changes})
    )
    Browser(site).visit()
    for what, headers in REQUESTS.items():
        inside, held = site.ledgers["r"].gauges(), site.counted.of("r").get("held", 0)
        browser = Browser(site)
        head = browser.visit(method="HEAD", headers=headers)
        assert browser.jar == {}, what
        assert (site.ledgers["r"].gauges(), site.counted.of("r").get("held", 0)) == (
            inside,
            held,
        ), "it waits for nothing"
        assert told(head) == told(Browser(site).visit(headers=headers)), what
    assert site.errors == []


def test_a_head_passes_while_there_is_room(tmp_path: Path) -> None:
    site = Site(tmp_path, small_room())
    assert isinstance(Browser(site).visit(method="HEAD"), Forward)


def test_a_head_says_how_long_the_line_is_as_get_does(tmp_path: Path) -> None:
    site = Site(
        tmp_path,
        small_room(total_active_users=1, new_users_per_minute=1, json_response_enabled=True),
    )
    for _ in range(12):
        browser = Browser(site)
        browser.visit()
        browser.wait()
        browser.visit()
    seen = []
    for method in ("HEAD", "GET"):
        answer = Browser(site).visit(method=method, headers=((b"accept", b"application/json"),))
        assert isinstance(answer, Answer)
        seen.append(json.loads(answer.body))
    head, got = seen
    for told_s in (
        ("cfWaitingRoom", "refreshIntervalSeconds"),
        ("greenroom", "nextTrySeconds"),
    ):  # drawn for each answer
        head[told_s[0]].pop(told_s[1]), got[told_s[0]].pop(told_s[1])
    assert head == got
    assert head["greenroom"]["peopleAhead"] > 0


def test_a_ledger_that_cannot_be_asked_holds_a_head(tmp_path: Path) -> None:
    site = Site(tmp_path, small_room(total_active_users=1))
    Browser(site).visit()

    def fail(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    site.change_ledger("peek", fail)
    answer = Browser(site).visit(method="HEAD")
    assert isinstance(answer, Answer)
    assert answer.status == 503
    assert len(site.errors) == 1
