"""A site whose visitors can be called: the real decision service, rows in a file, a real sender, and
a clock set by hand.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from decision_sites import full
from visitors import NAVIGATES, Browser, Reply, Site

from greenroom.calls.desk import Desk, SealedCalls
from greenroom.calls.rules import LOOK_MS
from greenroom.calls.sender import CallSender
from greenroom.decision.render import render
from greenroom.decision.verdict import Hold, Verdict
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.ledgers.calls import CallFile, CallStore
from greenroom.model.answer import Answer
from greenroom.model.record import replace
from greenroom.outbound import Guard, OutboundPolicy
from greenroom.outbound.mail import MailServer

JSON = ((b"accept", b"application/json"), (b"sec-fetch-site", b"same-origin"))


class CallTable:
    """A store in memory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, bytes], bytes] = {}
        self.counts: dict[str, int] = {}

    async def put(self, room: str, ticket_id: bytes, sealed: bytes, was: bytes | None) -> bool:
        if self.rows.get((room, ticket_id)) != was:
            return False
        self.rows[room, ticket_id] = sealed
        return True

    async def get(self, room: str, ticket_id: bytes) -> bytes | None:
        return self.rows.get((room, ticket_id))

    async def drop(self, room: str, ticket_id: bytes) -> None:
        self.rows.pop((room, ticket_id), None)

    async def move(self, room: str, old: bytes, new: bytes) -> None:
        sealed = self.rows.pop((room, old), None)
        if sealed is not None:
            self.rows.setdefault((room, new), sealed)

    async def ids(self) -> list[tuple[str, bytes]]:
        return list(self.rows)

    async def take(self, name: str, limit: int, lasts_ms: int) -> bool:
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name] <= limit

    async def block(self, name: str, lasts_ms: int) -> None:
        self.counts[name] = 1 << 30


class CallSite:
    """`others` are in line behind each other, and come back when asked to."""

    def __init__(
        self,
        folder: Path,
        site: Site,
        mail_port: int = 0,
        store: CallStore | None = None,
        guard: Guard | None = None,
        **sender: object,
    ) -> None:
        self.site = site
        server = MailServer("127.0.0.1", mail_port, "none", sender="line@shop.example")
        self.guard = guard or Guard(OutboundPolicy())
        self.store = store or CallFile(folder, site.clock)
        self.calls = SealedCalls(self.store, SealedSecrets(folder, site.clock.now_ms))
        self.calling = site.decisions.calling
        self.calling.desk = Desk(
            self.calls, lambda: self.guard, lambda: bool(mail_port), site.errors.append
        )
        self.sender = CallSender(
            self.calls,
            self.calling,
            lambda: site.decisions.table.rooms,
            lambda: self.guard,
            lambda: server if mail_port else None,
            site.clock.now_ms,
            **sender,  # type: ignore[arg-type]
        )
        self.inside = full(site)
        self.others: list[Browser] = []
        self._due_ms: dict[Browser, int] = {}

    async def visit(
        self,
        browser: Browser,
        method: str = "GET",
        query: str = "",
        headers: tuple[tuple[bytes, bytes], ...] = NAVIGATES,
    ) -> Reply:
        answered: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        arrival = browser.arrival("/", method, query, headers)
        self.site.decisions.receive(arrival, answered.set_result)
        verdict = await asyncio.wait_for(answered, 20)
        reply = render(verdict, arrival) if isinstance(verdict, Hold) else verdict
        browser.keep(reply)
        return reply

    async def settled(self) -> None:
        """Returns when the desk has done what it does after an answer."""
        await asyncio.gather(*self.calling.desk._tasks)

    async def asks(self, browser: Browser, **left: object) -> str:
        """The state that the page shows."""
        headers = (*JSON, (b"greenroom-call", json.dumps(left).encode()))
        return state_of(await self.visit(browser, "POST", "greenroom=call", headers))

    async def asks_if_in_line(self, browser: Browser, to: str) -> None:
        left = json.dumps({"channel": "email", "to": to}).encode()
        reply = await self.visit(
            browser, "POST", "greenroom=call", (*JSON, (b"greenroom-call", left))
        )
        if not isinstance(reply, Answer) or reply.status != 200 or b'"check"' not in reply.body:
            return
        for room_id, ticket_id in await self.store.ids():
            found = await self.calls.get(room_id, ticket_id)
            if found is not None and found[0].to == to:
                confirmed = replace(found[0], confirmed=True)
                await self.calls.put(room_id, ticket_id, confirmed, found[1])

    async def passes(self, ms: int, until: Callable[[], bool] = lambda: False) -> None:
        """Time passes: those in line come back when asked, and the sender looks."""
        end_ms = self.site.clock.ms + ms
        while self.site.clock.ms < end_ms and not until():
            self.site.advance(LOOK_MS)
            now_ms = self.site.clock.ms
            for browser in self.others:
                if self._due_ms.get(browser, 0) <= now_ms:
                    browser.visit()
                    self._due_ms[browser] = now_ms + browser.retry_s * 1000
            await self.sender.look()
            await self.sender.sent()

    async def rows(self) -> int:
        return len(await self.store.ids())

    def joins(self, client: str = "192.0.2.1", count: int = 1) -> Browser:
        """The last of `count` visitors who take a place; the others keep theirs."""
        for number in range(count):
            browser = Browser(self.site, client=client)
            browser.visit()
            browser.wait()
            browser.visit()
            for other in self.others:
                other.visit()
            if number < count - 1:
                self.others.append(browser)
        return browser


def state_of(reply: Reply) -> str:
    assert isinstance(reply, Answer), reply
    return str(json.loads(reply.body)["greenroom"]["call"]["state"])
