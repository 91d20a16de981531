"""A row of a visitor who wants to be called exists only while the place does, whatever visitors do in
whatever order; a place that moves has one row; and nobody is told that the turn came who has no place.
Each message is sent once, whenever the process is killed, and whichever data center sends.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from admission_world import START_MS, small_room
from called_visitors import CallSite, CallTable
from decision_sites import sites_in
from hypothesis import given, settings
from hypothesis import strategies as st
from visitors import NAVIGATES, Browser, Site

from greenroom.calls.desk import Desk
from greenroom.calls.rules import LOOK_MAX_MS, LOOK_MS, CallStep, step
from greenroom.calls.sender import CallSender
from greenroom.model.answer import Answer
from greenroom.model.call import VisitorCall
from greenroom.model.event import Event
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


async def stays(*_: object) -> None: ...


async def test_a_row_follows_a_place_whose_move_nobody_told(tmp_path: Path) -> None:
    """The process died behind the move, or another data center is quicker."""
    opened = sites_in(tmp_path)(host="shop.example", total_active_users=100, call_after_minutes=1)
    site = CallSite(tmp_path, opened, 1, CallTable())
    waiting = site.joins(count=6)
    await site.asks_if_in_line(waiting, "ann@mail.example")
    before = await site.store.ids()
    site.calling.desk.move = stays  # type: ignore[union-attr,method-assign]
    await move(site, waiting)
    await site.sender.look()
    after = await site.store.ids()
    assert len(after) == 1
    assert after != before
    site.site.clock.ms += LOOK_MAX_MS
    await site.sender.look()
    assert await site.store.ids() == after


@pytest.mark.parametrize("told", [True, False])
async def test_a_place_that_moves_before_the_sender_knows_it_is_drawn_keeps_it(
    tmp_path: Path, told: bool
) -> None:
    start_ms = START_MS + 1_500_000
    event = Event(
        id="e", name="sale", prequeue_start_ms=START_MS + 60_000, event_start_ms=start_ms,
        event_end_ms=start_ms + 36_000_000, shuffle_at_event_start=True,
    )  # fmt: skip
    room = small_room(host="shop.example", new_users_per_minute=1, call_after_minutes=1)
    opened = Site(tmp_path, room, events=(event,))
    site = CallSite(tmp_path, opened, 1, CallTable())
    opened.advance(60_000)
    waiting = site.joins(count=40)
    await site.asks_if_in_line(waiting, "ann@mail.example")
    site.others.append(waiting)
    await site.passes(start_ms - 30_000 - opened.clock.ms)
    ((room_id, old),) = await site.store.ids()
    before = await site.calls.get(room_id, old)
    assert before is not None
    while opened.clock.ms < start_ms + 6_000:  # the sender does not look
        opened.advance(LOOK_MS)
        for browser in site.others:
            browser.visit()
    draw = opened.decisions.table.rooms[room_id].now.draw
    assert draw is not None
    place = draw.key(old, before[0].key)
    assert place != before[0].key
    desk = site.calling.desk
    assert isinstance(desk, Desk)
    if not told:
        desk.move = stays  # type: ignore[method-assign]
    await move(site, waiting)
    await asyncio.gather(*desk._tasks)
    await site.sender.look()
    ((_, new),) = await site.store.ids()
    after = await site.calls.get(room_id, new)
    assert after is not None
    assert new != old
    assert draw.key(new, after[0].key) == place


async def test_after_a_start_the_first_estimate_counts_all_who_are_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[int, int] = {}

    def noted(call: VisitorCall, *more: Any) -> CallStep:
        told[call.key] = more[3]
        return step(call, *more)

    opened = sites_in(tmp_path)(host="shop.example", total_active_users=100, call_after_minutes=1)
    site = CallSite(tmp_path, opened, 1, CallTable())
    for _ in range(9):
        site.others.append(site.joins())
    for number, browser in reversed(list(enumerate(site.others))):
        await site.asks_if_in_line(browser, f"v{number}@mail.example")
    site.site.advance(60_000)  # all close the page
    monkeypatch.setattr("greenroom.calls.sender.step", noted)
    await sender_like(site).look()
    asked = await site.rows()
    assert asked > 5
    assert [told[key] for key in sorted(told)] == list(range(asked))


# -- one message of a kind ---------------------------------------------------------------------------


class Killed(BaseException):
    """As a process that is killed: nothing after it happens."""


class KilledTable(CallTable):
    """The process dies before or after the operation of this number."""

    def __init__(self) -> None:
        super().__init__()
        self.points, self.dies_at, self.dead = 0, -1, False

    def point(self) -> None:
        self.dead = self.dead or self.points == self.dies_at
        self.points += 1
        if self.dead:
            raise Killed

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("put", "get", "drop", "move", "ids"):
            return found

        async def done(*arguments: Any) -> Any:
            self.point()
            answer = await found(*arguments)
            self.point()
            return answer

        return done


class Mails:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, point: Callable[[], None]) -> None:
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.names: Counter[str] = Counter()

        async def send(_server: object, mail: EmailMessage) -> None:
            point()
            self.kinds[str(mail["To"]), str(mail["Subject"]).partition(": ")[2]] += 1
            self.names[str(mail["Message-ID"])] += 1
            point()

        monkeypatch.setattr("greenroom.calls.sender.send", send)
        monkeypatch.setattr("greenroom.calls.sender.MAIL_GAP_S", 0)


def sender_like(site: CallSite, **more: Any) -> CallSender:
    """As another process has it."""
    one = site.sender
    return CallSender(
        one._calls, one._calling, one._rooms, one._guard, one._mail_server, one._now_ms, **more
    )


def killed(folder: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int) -> tuple[int, int]:
    """How often *soon* is sent, and how many moments there were to die at."""
    table = KilledTable()
    mails = Mails(monkeypatch, table.point)

    async def story() -> None:
        values = {"total_active_users": 100, "call_after_minutes": 1}
        opened = sites_in(folder)(host="shop.example", **values)
        site = CallSite(folder, opened, 1, table)
        waiting = site.joins(count=6)
        await site.asks_if_in_line(waiting, "ann@mail.example")
        table.points, table.dies_at = 0, dies_at
        try:
            await site.sender.look()
            await site.sender.sent()
        except Killed:
            pass
        points = table.points
        table.dies_at, table.dead = -1, False
        for _ in range(3):
            again = sender_like(site)
            await again.look()
            await again.sent()
        table.points = points

    asyncio.run(story())
    return mails.kinds["ann@mail.example", "It is your turn soon"], table.points


def kills(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    _, points = killed(folder / "whole", monkeypatch, -1)
    return [killed(folder / str(at), monkeypatch, at)[0] for at in range(points)]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("whole", *map(str, range(40))):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_message_is_sent_once_whenever_the_process_is_killed(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = kills(folders, monkeypatch)
    assert len(sent) > 8
    assert Counter(sent) == {1: len(sent) - 2, 0: 2}, "lost only while it is handed over"


def test_messages_that_are_not_written_down_are_sent_twice(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def marked(_self: CallSender, _sending: object) -> bool:
        return True

    monkeypatch.setattr(CallSender, "_mark", marked)
    assert max(kills(folders, monkeypatch)) > 1


class Leases:
    """Of two processes, by a clock set by hand."""

    def __init__(self, site: CallSite) -> None:
        self.held: dict[str, tuple[str, int]] = {}
        self.clock = site.site.clock

    def of(self, process: str) -> Callable[[str], Any]:
        leases = self

        class Lease:
            def __init__(self, center: str) -> None:
                self.center = center

            async def acquire(self) -> bool:
                holder, until_ms = leases.held.get(self.center, ("", 0))
                if holder != process and until_ms > leases.clock.ms:
                    return False
                leases.held[self.center] = process, leases.clock.ms + 15_000
                return True

            async def release(self) -> None:
                leases.held.pop(self.center, None)

        return Lease


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("both", "a", "b", "restart")), st.integers(1, 30))))
def test_of_two_data_centers_one_sends_and_another_when_it_is_gone(
    steps: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        mails = Mails(patch, lambda: None)

        async def story() -> None:
            values = {"total_active_users": 100, "call_after_minutes": 1}
            opened = sites_in(Path(folder))(host="shop.example", **values)
            site = CallSite(Path(folder), opened, 1, CallTable())
            leases = Leases(site)
            for _ in range(14):
                site.others.append(site.joins())
            people, site.others = site.others, []
            for number, browser in enumerate(people):
                site.calling.desk._center = "ab"[number % 2]  # type: ignore[union-attr]
                await site.asks_if_in_line(browser, f"v{number}@mail.example")
            asked = await site.rows()
            assert asked > 10

            def senders() -> dict[str, CallSender]:
                return {one: sender_like(site, center=one, lease_of=leases.of(one)) for one in "ab"}

            running = senders()

            async def look(names: str) -> None:
                site.site.advance(20_000)
                looking = [
                    running[name].look()
                    for name in names
                    if await running[name]._lease.acquire()  # type: ignore[union-attr]
                ]
                await asyncio.gather(*looking)
                await asyncio.gather(*(running[name].sent() for name in names))

            for names, times in (*steps, ("both", 5), ("a", 120)):
                if names == "restart":
                    running = senders()
                    continue
                for _ in range(times):
                    await look("ab" if names == "both" else names)
            assert await site.rows() == 0
            turns = [to for to, kind in mails.kinds if kind == "It is your turn"]
            assert len(turns) == asked, "nobody is forgotten"
            assert set(mails.kinds.values()) == {1}, "nobody is told twice"

        asyncio.run(story())
