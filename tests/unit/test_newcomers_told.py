"""Newcomers whose page does not say how long the wait is: the ledger makes no estimate for them,
and nothing that they see changes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from visitors import NAVIGATES, Browser, Site

from greenroom.model.answer import Answer
from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.request.admissible import signs_of

Headers = tuple[tuple[bytes, bytes], ...]
Open = Callable[..., Site]

JSON = ((b"accept", b"application/json"),)
UPDATE = (*NAVIGATES, (b"greenroom-update", b"placing"))
OWN_PAGE = "<p>{{waitTime}} {{#waitTimeKnown}}known{{/waitTimeKnown}}</p>"


@pytest.fixture
def full(tmp_path: Path) -> Open:
    """A room in which one visitor a minute is let in; one has been, and one has a place in line, so
    that the wait of the next is known.
    """

    def opened(**changes: object) -> Site:
        site = Site(
            tmp_path,
            small_room(
                **{
                    "total_active_users": 5,
                    "new_users_per_minute": 1,
                    "json_response_enabled": True,
                    **changes,
                }
            ),
        )
        Browser(site).visit()
        waiting = Browser(site)
        waiting.visit()
        site.advance(max(2, waiting.retry_s) * 1_000)
        waiting.visit()
        return site

    return opened


def arrival(headers: Headers) -> Arrival:
    """As the gateway makes it of lines that it knows."""
    facts = dict(headers)
    return Arrival(
        "GET",
        "http",
        "shop.example",
        "/",
        "",
        headers,
        "192.0.2.1",
        facts=facts,
        signs=signs_of(facts),
    )


def asked(site: Site, headers: Headers, always: bool = False) -> tuple[list[bytes], set[bool]]:
    """The answers to twenty newcomers, and whether the ledger was to say how long it takes
    (`always`: it does in any case).
    """
    ledger, told = site.ledgers["r"], set()

    def arrives(ticket_id: bytes, now_ms: int, wants: bool = True) -> Any:
        told.add(wants)
        return ledger.arrive_now(ticket_id, now_ms, wants or always)

    site.draw.seed(1)
    site.change_ledger("arrive_now", arrives)
    replies = [site.ask(arrival(headers)) for _ in range(20)]
    site.ledgers["r"] = ledger
    return [reply.body for reply in replies if isinstance(reply, Answer)], told


@pytest.mark.parametrize(
    ("headers", "changes"), [(JSON, {}), (UPDATE, {}), (NAVIGATES, {"custom_page_html": OWN_PAGE})]
)
def test_who_may_be_told_numbers_is_told_an_estimate(
    full: Open, headers: Headers, changes: dict[str, object]
) -> None:
    site = full(**changes)
    bodies, told = asked(site, headers)
    assert (len(bodies), told) == (20, {True})
    outcome = site.events_seen[-1].outcome
    assert outcome is not None
    assert outcome.estimate is not None


def test_the_built_in_page_of_a_newcomer_is_the_same_without_an_estimate(full: Open) -> None:
    site = full()
    with_estimates, _ = asked(site, NAVIGATES, always=True)
    bodies, told = asked(site, NAVIGATES)
    assert (bodies, told) == (with_estimates, {False})
    known, unknown = (site.events_seen[at].outcome for at in (-21, -1))
    assert known is not None
    assert unknown is not None
    assert known.estimate is not None
    assert replace(known, estimate=None) == unknown


def shown(site: Site, *lines: tuple[bytes, bytes]) -> Answer:
    """The page for a newcomer who tries again in two seconds."""
    site.draw.seed(4)
    reply = site.ask(arrival((*NAVIGATES, *lines)))
    assert isinstance(reply, Answer)
    return reply


def test_newcomers_of_one_second_are_shown_one_page_and_given_a_ticket_each(full: Open) -> None:
    site = full()
    site.advance(1_000 - site.clock.ms % 1_000)
    first, packed = shown(site), shown(site, (b"accept-encoding", b"gzip"))
    site.advance(999)
    other = shown(site)
    assert other.body is first.body
    assert other.headers is first.headers
    assert shown(site, (b"accept-encoding", b"gzip")).body is packed.body
    assert packed.body[:2] == b"\x1f\x8b"
    assert first.set_cookie != other.set_cookie
    site.advance(1)
    assert shown(site).body is not first.body


def test_a_newcomer_is_shown_what_has_changed_within_the_same_second(full: Open) -> None:
    site = full(default_template_language="en-US")
    first = shown(site)
    site.configure(
        small_room(
            total_active_users=5,
            new_users_per_minute=1,
            default_template_language="de-DE",
            queueing_status_code=202,
        )
    )
    other = shown(site)
    assert (first.status, other.status) == (200, 202)
    assert b"<html lang=de-DE" in other.body
    site.decisions.table.rooms["r"].hold_for_origin(True)
    assert shown(site).body != other.body
    site.configure(small_room(queueing_method="reject"))
    assert shown(site).headers.get(b"Refresh") is None


def test_pages_that_may_have_a_number_in_them_are_made_for_each_newcomer(full: Open) -> None:
    site = full()
    site.configure(small_room(queue_all=True))
    first = shown(site)
    assert shown(site).body is not first.body


def test_who_is_not_known_is_told(full: Open) -> None:
    site = full()
    site.ask(Arrival("GET", "http", "shop.example", "/", "", NAVIGATES, "192.0.2.1"))
    outcome = site.events_seen[-1].outcome
    assert outcome is not None
    assert outcome.estimate is not None
