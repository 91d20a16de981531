"""What visitors leave so as to be called, while the sender, or a second request, changes the same row."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from admission_world import HandClock
from called_visitors import CallTable

from greenroom.calls.desk import AT_ONCE, PER_ADDRESS, PER_NETWORK, Desk, SealedCalls, counted_as
from greenroom.errors import StorageFailed
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.model.call import CONFIRM, DECOY, EMAIL, PUSH, VisitorCall
from greenroom.model.record import replace
from greenroom.outbound import Guard, OutboundPolicy
from greenroom.request.forwarded import SOCKET_PEER
from greenroom.runtime.calls import ProcessCalls

ROOM, TICKET = "r", b"a" * 12
TO = "ann+shop@mail.example"  # counts as ann@mail.example
CALL = VisitorCall(EMAIL, TO, 7, 1_000, "en-US", "https://shop.example/", 600_000)
OTHER = replace(CALL, to="bob@mail.example")


class BusyTable(CallTable):
    """Before a row is replaced, `meanwhile` changes it, once."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def put(self, room: str, ticket_id: bytes, sealed: bytes, was: bytes | None) -> bool:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        return await super().put(room, ticket_id, sealed, was)


class DeskAtWork:
    def __init__(self, folder: Path) -> None:
        self.table = BusyTable()
        self.calls = SealedCalls(self.table, SealedSecrets(folder, HandClock().now_ms))
        self.errors: list[BaseException] = []
        guard = Guard(OutboundPolicy())
        self.desk = Desk(self.calls, lambda: guard, lambda: True, self.errors.append, "fra")

    async def ran(self, work: Coroutine[Any, Any, bool]) -> bool:
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.desk.run(work, False, answered.set_result)
        return await answered

    async def row(self) -> VisitorCall:
        found = await self.calls.get(ROOM, TICKET)
        assert found is not None
        return found[0]

    async def marks_sent(self) -> None:
        """As the sender before it sends."""
        found = await self.calls.get(ROOM, TICKET)
        assert found is not None
        await self.calls.put(ROOM, TICKET, replace(found[0], sent=CONFIRM), found[1])


def plays(folder: Path, story: Callable[[DeskAtWork], Awaitable[None]]) -> None:
    async def play() -> None:
        await story(DeskAtWork(folder))

    asyncio.run(play())


def test_an_address_left_while_the_sender_writes_is_kept(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        assert await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1") == "check"
        at.table.meanwhile = at.marks_sent
        assert await at.desk.put(ROOM, TICKET, OTHER, "192.0.2.1") == "check"
        assert (await at.row()).to == OTHER.to
        assert max(at.table.counts.values()) == 2, "each request counts once"

    plays(tmp_path, story)


def test_a_row_says_in_which_data_center_its_place_is(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1")
        assert (await at.row()).center == "fra"
        guard = Guard(OutboundPolicy())
        there = Desk(at.calls, lambda: guard, lambda: True, at.errors.append, "iad")
        await there.move(ROOM, TICKET, b"b" * 12, lambda key: min(key, 5))
        found = await at.calls.get(ROOM, b"b" * 12)
        assert found is not None
        assert (found[0].center, found[0].key) == ("iad", 5)
        assert await at.calls.get(ROOM, TICKET) is None

    plays(tmp_path, story)


def test_a_row_that_moves_replaces_no_newer_one(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1")
        await at.calls.put(ROOM, b"b" * 12, OTHER)
        await at.desk.move(ROOM, TICKET, b"b" * 12, lambda key: key)
        found = await at.calls.get(ROOM, b"b" * 12)
        assert found is not None
        assert found[0].to == OTHER.to
        assert await at.calls.get(ROOM, TICKET) is None

    plays(tmp_path, story)


@pytest.mark.parametrize(
    ("client", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        (SOCKET_PEER, ""),
        ("", ""),
    ],
)
def test_a_network_is_an_address_or_what_a_household_has(client: str, network: str) -> None:
    assert counted_as(client) == network


def test_visitors_without_an_address_share_no_limit(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        for number in range(PER_NETWORK + 1):
            left = replace(CALL, to=f"v{number}@mail.example")
            assert await at.desk.put(ROOM, TICKET, left, SOCKET_PEER) == "check"

    plays(tmp_path, story)


def test_who_presses_the_link_twice_is_told_twice_that_it_worked(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1")

        async def first() -> None:
            assert await at.desk.confirm(ROOM, TICKET, CALL.asked_ms)

        at.table.meanwhile = first
        assert await at.desk.confirm(ROOM, TICKET, CALL.asked_ms)
        assert (await at.row()).confirmed

    plays(tmp_path, story)


def test_a_row_that_cannot_be_opened_is_not_said_to_be_replaced(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        at.table.rows[ROOM, TICKET] = b"sealed with a key that is not here yet"
        assert await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1") == "invalid"

    plays(tmp_path, story)


def test_the_link_to_one_address_does_not_confirm_another(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1")
        await at.desk.put(ROOM, TICKET, OTHER, "192.0.2.1")  # in the same millisecond
        assert not await at.desk.confirm(ROOM, TICKET, CALL.asked_ms)
        assert not (await at.row()).confirmed

    plays(tmp_path, story)


@pytest.mark.parametrize("then", ["the row has ended", "there is another address", "nothing"])
def test_a_refusal_counts_for_the_address_whatever_became_of_the_row(
    tmp_path: Path, then: str
) -> None:
    async def story(at: DeskAtWork) -> None:
        await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1")
        if then == "the row has ended":
            at.table.rows.clear()
        elif then == "there is another address":
            await at.desk.put(ROOM, TICKET, OTHER, "192.0.2.1")
        assert await at.desk.refuse(ROOM, TICKET, at.calls.owner(CALL))
        if then == "there is another address":
            assert (await at.row()).to == OTHER.to
        elif then == "nothing":
            assert await is_decoy(at)
            assert not await at.desk.confirm(ROOM, TICKET, CALL.asked_ms)
        at.table.rows.clear()
        left = replace(CALL, to=CALL.to.upper())
        assert await at.desk.put(ROOM, TICKET, left, "192.0.2.1") == "check"
        assert await is_decoy(at)
        await at.desk.put(ROOM, TICKET, replace(left, asked_ms=2_000, travel_ms=1), "192.0.2.1")
        assert await is_decoy(at)
        assert (await at.row()).asked_ms == 1_000, "as of an address that is asked for again"

    plays(tmp_path, story)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann@mail.example", "Ann+{}@mail.example"),
        ("ann@gmail.com", "a.n.n+{}@googlemail.com"),
    ],
)
def test_one_mailbox_gets_no_more_by_all_of_its_names(tmp_path: Path, one: str, other: str) -> None:
    async def story(at: DeskAtWork) -> None:
        for number in range(PER_ADDRESS):
            call = replace(CALL, to=other.format(number))
            await at.desk.put(ROOM, bytes([number]) * 12, call, "192.0.2.1")
        await at.desk.put(ROOM, TICKET, replace(CALL, to=one), "192.0.2.1")
        assert await is_decoy(at)
        left = await at.calls.get(ROOM, bytes(12))
        assert left is not None
        assert left[0].to == other.format(0), "it is sent to the name that was left"

    plays(tmp_path, story)


def test_of_more_than_the_disk_serves_the_rest_is_told_at_once(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        release = asyncio.Event()

        async def work() -> bool:
            return await release.wait()

        waiting = [asyncio.ensure_future(at.ran(work())) for _ in range(AT_ONCE)]
        await asyncio.sleep(0)
        assert not await at.ran(work())
        release.set()
        assert all(await asyncio.gather(*waiting))
        assert await at.ran(work())

    plays(tmp_path, story)


async def is_decoy(at: DeskAtWork) -> bool:
    row = await at.row()
    return row.sent == DECOY and not row.confirmed and "@" not in row.to


def test_who_confirmed_and_then_refuses_has_no_row(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        await at.desk.put(ROOM, TICKET, CALL, "192.0.2.1")
        assert await at.desk.confirm(ROOM, TICKET, CALL.asked_ms)
        assert await at.desk.refuse(ROOM, TICKET, at.calls.owner(CALL))
        assert not at.table.rows

    plays(tmp_path, story)


def test_a_store_that_fails_is_not_said_to_have_ended_anything(tmp_path: Path) -> None:
    async def story(at: DeskAtWork) -> None:
        async def fails(*_: object) -> None:
            raise StorageFailed("no disk")

        at.table.drop = at.table.block = fails  # type: ignore[method-assign, assignment]
        assert not await at.ran(at.desk.drop(ROOM, TICKET))
        assert not await at.ran(at.desk.refuse(ROOM, TICKET, at.calls.owner(CALL)))
        assert len(at.errors) == 2

    plays(tmp_path, story)


@pytest.mark.parametrize(
    ("endpoint", "usable"),
    [
        ("https://push.example/a", True),
        ("https://10.0.0.5/a", False),
        ("https://push.example:8443/a", False),
        ("http://push.example/a", False),
    ],
)
async def test_no_visitor_reaches_what_the_settings_allow_operators(
    tmp_path: Path, endpoint: str, usable: bool
) -> None:
    guard = Guard(OutboundPolicy(ports=(), allowed=("10.0.0.0/8",)))
    notifications: Any = SimpleNamespace(guard=guard, mail_ready=False, mail_server=None)
    decision: Any = SimpleNamespace(calling=SimpleNamespace(desk=None))
    calls = ProcessCalls(None, tmp_path, HandClock(), decision, notifications, pytest.fail)
    desk = decision.calling.desk
    ours = desk.channels()
    push = replace(
        CALL, channel=PUSH, to=endpoint, p256dh=ours.key, auth="a" * 22, vapid=ours.vapid
    )
    assert (await desk.put(ROOM, TICKET, push, "192.0.2.1") != "invalid") is usable
    assert calls._sender._guard().policy == guard.for_visitors().policy
    await calls.close()
