"""The same requests through two front ends of the same decision service, one on sockets and one without HTTP: the same answers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from plain_front_end import Given, Pairs, PlainFrontEnd
from visitors import Site

from greenroom.decision.observer import Decided
from greenroom.decision.tickets import Sealer
from greenroom.model.event import Event
from greenroom.model.rule import Rule

PAGE: Pairs = ((b"Accept", b"text/html"), (b"Sec-Fetch-Mode", b"navigate"))
JSON: Pairs = ((b"Accept", b"application/json"),)
UPDATE: Pairs = ((b"Accept", b"*/*"), (b"Greenroom-Update", b"1"))
LEAVE: Pairs = ((b"Greenroom-Update", b"leave"),)
IMAGE: Pairs = ((b"Accept", b"image/*"), (b"Sec-Fetch-Dest", b"image"))
NOT_COMPARED = frozenset({b"date", b"connection", b"content-length", b"set-cookie", b"cache-control"})
NAME = b"__cfwaitingroom="


@dataclass
class Step:
    """One request of one visitor, and what is expected to be decided."""

    decided: Decided | None  # None: refused before a decision
    headers: Pairs = PAGE
    method: str = "GET"
    target: str = "/"
    visitor: str = "a"
    host: bytes = b"shop.example"
    wait_ms: int = 0
    change: Callable[[Site], None] = field(default=lambda _: None)


def room_of(**changes: Any) -> Callable[[Site], None]:
    return lambda site: site.configure(small_room(total_active_users=1, **changes), events=())


def bypassed(site: Site) -> None:
    site._bypass = lambda *_: Rule(expression="true")
    site.settle()


def prequeue(site: Site) -> None:
    now = site.clock.ms
    event = Event(
        name="sale", event_start_ms=now + 3_600_000, event_end_ms=now + 7_200_000, prequeue_start_ms=now - 1000, shuffle_at_event_start=True
    )
    site.configure(small_room(total_active_users=1), events=(event,))


def broken(site: Site) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("broken on purpose")

    site.ledgers["r"].arrive = fail  # type: ignore[method-assign]


STORIES: dict[str, list[Step]] = {
    "let in, renewed, and the next one waits": [
        Step(Decided.ADMITTED),
        Step(Decided.ACTIVE),
        Step(Decided.ACTIVE, wait_ms=20_000),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.HELD, UPDATE, visitor="b", wait_ms=3_000),
        Step(Decided.HELD, PAGE, "HEAD", visitor="b", wait_ms=20_000),
        Step(Decided.LEFT, LEAVE, "POST", visitor="a"),
        Step(Decided.ADMITTED, UPDATE, visitor="b", wait_ms=20_000),
        Step(Decided.ACTIVE, IMAGE, visitor="b", target="/x.png"),
    ],
    "what has no place": [Step(Decided.PLACELESS, IMAGE), Step(Decided.PLACELESS, PAGE, "HEAD"), Step(Decided.ADMITTED)],
    "JSON": [Step(Decided.ADMITTED, change=room_of(json_response_enabled=True)), Step(Decided.HELD, JSON, visitor="b")],
    "a status of one's own": [Step(Decided.ADMITTED, change=room_of(queueing_status_code=429)), Step(Decided.HELD, visitor="b")],
    "everybody waits": [Step(Decided.HELD, change=room_of(queue_all=True)), Step(Decided.HELD, wait_ms=30_000)],
    "closed": [Step(Decided.HELD, change=room_of(queueing_method="reject"))],
    "open": [Step(Decided.ADMITTED, IMAGE, change=room_of(queueing_method="passthrough"))],
    "suspended": [Step(Decided.SUSPENDED, change=room_of(suspended=True))],
    "a bypass rule": [Step(Decided.BYPASSED, change=bypassed)],
    "no room": [Step(Decided.UNCOVERED, host=b"other.example", change=room_of(host="shop.example"))],
    "a pre-queue, and its receipt": [
        Step(Decided.HELD, change=prequeue),
        Step(Decided.HELD, wait_ms=20_000),
        Step(Decided.RECEIPT, target="/?greenroom=receipt"),
        Step(Decided.LEFT, PAGE, "POST", "/?greenroom=leave"),
    ],
    "a session that the origin ends": [
        Step(Decided.ADMITTED, change=room_of(enabled_origin_commands=("revoke",))),
        Step(Decided.REVOKED, target="/revoke"),
        Step(Decided.ADMITTED, wait_ms=5_000),
    ],
    "a forged ticket": [Step(Decided.ADMITTED, (*PAGE, (b"Cookie", NAME + b"x" * 108)))],
    "something breaks": [Step(Decided.FAILED, change=broken)],
    "refused": [
        Step(None, host=b"a b"),
        Step(None, target="/a%2Fb"),
        Step(None, target="/a;b"),
        Step(None, target="http://other.example/"),
        Step(None, (*PAGE, (b"Host", b"twice.example"))),
        Step(None, method="TRACE"),
        Step(None, method="X" * 30),
        Step(None, target="/" + "x" * 9_000),
        Step(None, tuple((b"X-%d" % number, b"1") for number in range(101))),
    ],
}


def origin(_method: str, path: str) -> tuple[int, Pairs, bytes]:
    command = ((b"Cf-Waiting-Room-Command", b"revoke"),) if path == "/revoke" else ()
    return 200, ((b"X-Origin", b"yes"), *command), b"hello from the origin"


def ticket_of(site: Site, cookie: bytes) -> object:
    """What a Set-Cookie value holds: the ticket opened (nonces differ), and the attributes as they are."""
    value, _, rest = cookie.removeprefix(NAME).partition(b";")
    return (Sealer(site.ring).open(value, b"r", site.clock.ms) if value else value), rest


def told(site: Site, given: Given, decided: Decided | None) -> tuple[Any, ...]:
    if decided is None:  # how a refusal is worded is each front end's own
        return (given.status,)
    named = {(name.lower(), value) for name, value in given.headers if name.lower() not in NOT_COMPARED}
    return given.status, named, given.body, ticket_of(site, given.cookie)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_the_gateway_and_a_front_end_without_http_say_the_same(story: list[Step], tmp_path: Path, rig: Any, run: Any) -> None:
    here, there = (Site(tmp_path / name, small_room(total_active_users=1)) for name in ("here", "there"))
    plain = PlainFrontEnd(here.decisions, origin)
    rig.decisions = there.decisions

    async def app(request: Any, writer: asyncio.StreamWriter) -> None:
        status, headers, body = origin(request.method, request.target.partition("?")[0])
        lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
        content = b"" if request.method == "HEAD" else body
        writer.write(b"HTTP/1.1 %d OK\r\n%bContent-Length: %d\r\n\r\n%b" % (status, lines, len(body), content))

    async def over_sockets(step: Step, headers: Pairs) -> Given:
        lines = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in headers if name != b"Host")
        host = [value.decode() for name, value in headers if name == b"Host"]
        async with rig.visitor() as talk:
            hosts = "".join(f"Host: {one}\r\n" for one in host)
            talk.send(f"{step.method} {step.target} HTTP/1.1\r\n{hosts}{lines}\r\n".encode())
            got = await talk.response(step.method)
        pairs = tuple((name.encode(), value.encode()) for name, value in got.headers)
        cookie = next((value for name, value in pairs if name.lower() == b"set-cookie" and value.startswith(NAME)), b"")
        return Given(got.status, pairs, got.body, cookie)

    async def play() -> None:
        rig.app = app
        jars: dict[int, dict[str, bytes]] = {0: {}, 1: {}}
        async with rig.running():
            for number, step in enumerate(story):
                given: list[Given] = []
                for index, site in enumerate((here, there)):
                    step.change(site)
                    site.advance(step.wait_ms)
                    site.events_seen.clear()
                    jar = jars[index].get(step.visitor, b"")
                    headers = ((b"Host", step.host), *step.headers, *([(b"Cookie", jar)] if jar else []))
                    given.append(plain.request(step.method, step.target, headers) if index == 0 else await over_sockets(step, headers))
                    cookie = given[-1].cookie
                    if cookie:
                        jars[index][step.visitor] = b"" if b"Max-Age=0" in cookie else cookie.partition(b";")[0]
                    decided = site.events_seen[-1].decided if site.events_seen else None
                    assert decided == step.decided, f"step {number} at {'the plain front end' if index == 0 else 'the gateway'}"
                if step.decided is Decided.ADMITTED and given[0].headers:
                    assert all(b"x-origin" in {name.lower() for name, _ in one.headers} or step.headers is UPDATE for one in given)
                assert told(here, given[0], step.decided) == told(there, given[1], step.decided), f"step {number}"
        rig.errors.clear()

    run(play())
    assert {step.decided for story in STORIES.values() for step in story} == {*Decided, None}, "every outcome is in a story"
