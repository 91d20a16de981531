"""A row of a visitor who wants to be called exists only while the place does, whatever visitors do in
whatever order; a place that moves has one row; and nobody is told that the turn came who has no place.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from called_visitors import CallSite, CallTable
from decision_sites import sites_in
from hypothesis import given, settings
from hypothesis import strategies as st
from visitors import NAVIGATES, Browser

from greenroom.calls.rules import LOOK_MAX_MS
from greenroom.model.answer import Answer
from greenroom.model.visit import Outcome, Standing

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("joins", "asks", "stops", "leaves", "moves", "comes", "passes", "long")),
        st.integers(0, 5),
    ),
    min_size=3,
    max_size=15,
)


async def move(site: CallSite, browser: Browser) -> Browser:
    reply = await site.visit(browser, query="greenroom=move")
    phone = Browser(site.site)
    if isinstance(reply, Answer) and b"greenroom=move." in reply.body:
        code = reply.body.partition(b"greenroom=move.")[2][:108].decode()
        await site.visit(phone, "POST", f"greenroom=move.{code}")
    return phone


async def play(site: CallSite, steps: list[tuple[str, int]]) -> None:
    people = [site.joins()]
    for name, number in steps:
        browser = people[number % len(people)]
        if name == "joins":
            people.append(site.joins())
        elif name == "asks":
            await site.asks_if_in_line(browser, f"v{number}@mail.example")
        elif name == "stops":
            await site.visit(browser, "POST", "greenroom=call")
        elif name == "leaves":
            await site.visit(browser, "POST", "greenroom=leave", NAVIGATES)
        elif name == "moves":
            people.append(await move(site, browser))
        elif name == "comes":
            browser.visit()
        else:
            site.site.advance(5_000 if name == "passes" else 700_000)
            await site.sender.look()
            await site.sender.sent()
    await asyncio.sleep(0)
    for _ in range(2):  # a last message may end a row
        site.site.clock.ms += LOOK_MAX_MS
        await site.sender.look()
        await site.sender.sent()
    ledger = site.site.ledgers["r"]
    for room_id, ticket_id in await site.store.ids():
        found = await site.calls.get(room_id, ticket_id)
        assert found is not None
        answers: list[Outcome] = []
        ledger.reclaim(ticket_id, found[0].key, answers.append)
        assert answers[0].standing is Standing.WAITING
    assert site.site.errors == []


@pytest.fixture(autouse=True, scope="module")
def no_retries() -> Iterator[None]:
    """Nobody listens on the port of the mail server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("greenroom.calls.sender.RETRIES_S", ())
        yield


@settings(max_examples=20, deadline=None)
@given(STEPS)
def test_a_row_exists_only_while_its_place_does(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = sites_in(Path(folder))(
            host="shop.example", total_active_users=100, call_after_minutes=1
        )
        called = CallSite(Path(folder), site, 1, CallTable())
        asyncio.run(play(called, steps))
