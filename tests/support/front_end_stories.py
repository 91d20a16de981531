"""Stories of visitors that every front end must tell alike: the requests, and what is decided about
each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from admission_world import small_room
from plain_front_end import Given, Pairs, PlainFrontEnd
from visitors import Site

from greenroom.decision.observer import Decided
from greenroom.decision.service import DecisionService
from greenroom.decision.tickets import Sealer
from greenroom.ledgers.port import nobody
from greenroom.model.event import Event
from greenroom.model.rule import Rule
from greenroom.request.routing import KnownHosts

PAGE: Pairs = ((b"Accept", b"text/html"), (b"Sec-Fetch-Mode", b"navigate"))
JSON: Pairs = ((b"Accept", b"application/json"),)
UPDATE: Pairs = ((b"Accept", b"*/*"), (b"Greenroom-Update", b"1"))
LEAVE: Pairs = ((b"Greenroom-Update", b"leave"),)
IMAGE: Pairs = ((b"Accept", b"image/*"), (b"Sec-Fetch-Dest", b"image"))
SCRIPTS = "https://www.example"
CALL: Pairs = ((b"Origin", SCRIPTS.encode()), (b"Sec-Fetch-Dest", b"empty"))
PREFLIGHT: Pairs = (
    (b"Origin", SCRIPTS.encode()),
    (b"Accept", b"*/*"),
    (b"Access-Control-Request-Method", b"PUT"),
)
NOT_COMPARED = frozenset(
    {b"date", b"connection", b"content-length", b"set-cookie", b"cache-control"}
)
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


def prepared(step: Step, site: Site, jar: dict[str, bytes]) -> Pairs:
    """Brings a site to the moment of this step; the headers of its request, with the visitor's
    cookie.
    """
    step.change(site)
    site.advance(step.wait_ms)
    site.events_seen.clear()
    cookie = jar.get(step.visitor, b"")
    return ((b"Host", step.host), *step.headers, *([(b"Cookie", cookie)] if cookie else []))


def check(step: Step, site: Site, jar: dict[str, bytes], given: Given, where: str) -> None:
    """What was decided is what the story says; the visitor keeps the cookie as a browser does."""
    if given.cookie:
        jar[step.visitor] = b"" if b"Max-Age=0" in given.cookie else given.cookie.partition(b";")[0]
    decided = site.events_seen[-1].decided if site.events_seen else None
    assert decided == step.decided, where


def fail_everybody(site: Site) -> None:
    for ledger in site.ledgers.values():
        for ticket_id in ledger.ledger.sessions.inside:
            ledger.fail(ticket_id, nobody)


def room_of(**changes: Any) -> Callable[[Site], None]:
    return lambda site: site.configure(small_room(total_active_users=1, **changes), events=())


def only_known_hosts(site: Site) -> None:
    site.configure(small_room(total_active_users=1, host="shop.example"), events=())
    site.decisions.table.hosts = KnownHosts(["shop.example"], [])


def bypassed(site: Site) -> None:
    site._bypass = lambda *_: Rule(expression="true")
    site.settle()


def prequeue(site: Site) -> None:
    now = site.clock.ms
    event = Event(
        name="sale",
        event_start_ms=now + 3_600_000,
        event_end_ms=now + 7_200_000,
        prequeue_start_ms=now - 1000,
        shuffle_at_event_start=True,
    )
    site.configure(small_room(total_active_users=1), events=(event,))


def broken(site: Site) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("broken on purpose")

    site.change_ledger("arrive_now", fail)


STORIES: dict[str, list[Step]] = {
    "let in, renewed, and the next one waits": [
        Step(Decided.ADMITTED),
        Step(Decided.ACTIVE),
        Step(Decided.ACTIVE, wait_ms=20_000),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.HELD, UPDATE, visitor="b", wait_ms=3_000),
        Step(
            Decided.HELD, PAGE, "HEAD", visitor="b", wait_ms=4_000
        ),  # later it would be held, see late_try
        Step(Decided.ENDED, LEAVE, "POST", visitor="a"),
        Step(Decided.ADMITTED, UPDATE, visitor="b", wait_ms=20_000),
        Step(Decided.ACTIVE, IMAGE, visitor="b", target="/x.png"),
    ],
    "what cannot wait, and room to spare": [
        Step(Decided.PROVISIONAL, IMAGE),
        Step(Decided.PLACELESS, PAGE, "HEAD", visitor="b"),
        Step(Decided.PLACELESS, IMAGE, visitor="b"),
        Step(Decided.ACTIVE, IMAGE, wait_ms=5_000),
        Step(Decided.HELD, visitor="c"),
    ],
    "what has no place": [
        Step(Decided.PLACELESS, IMAGE, change=room_of(provisional_sessions=False)),
        Step(Decided.PLACELESS, PAGE, "HEAD"),
        Step(Decided.ADMITTED),
    ],
    "JSON": [
        Step(Decided.ADMITTED, change=room_of(json_response_enabled=True)),
        Step(Decided.HELD, JSON, visitor="b"),
    ],
    "a status of one's own": [
        Step(Decided.ADMITTED, change=room_of(queueing_status_code=429)),
        Step(Decided.HELD, visitor="b"),
    ],
    "everybody waits": [
        Step(Decided.HELD, change=room_of(queue_all=True)),
        Step(Decided.HELD, wait_ms=30_000),
    ],
    "closed": [Step(Decided.HELD, change=room_of(queueing_method="reject"))],
    "open": [Step(Decided.ADMITTED, IMAGE, change=room_of(queueing_method="passthrough"))],
    "suspended": [Step(Decided.SUSPENDED, change=room_of(suspended=True))],
    "a bypass rule": [Step(Decided.BYPASSED, change=bypassed)],
    "no room": [
        Step(Decided.UNCOVERED, host=b"other.example", change=room_of(host="shop.example"))
    ],
    "a pre-queue, and its receipt": [
        Step(Decided.HELD, change=prequeue),
        Step(Decided.HELD, wait_ms=20_000),
        Step(Decided.RECEIPT, target="/?greenroom=receipt"),
        Step(Decided.LEFT, PAGE, "POST", "/?greenroom=leave"),
        Step(Decided.NOT_HERE, PAGE, "POST", "/?greenroom=leave"),
    ],
    "links that move no place": [
        Step(Decided.ADMITTED),
        Step(Decided.MOVE, target="/?greenroom=move.forged", visitor="b"),
        Step(Decided.MOVE, PAGE, "POST", "/?greenroom=move.forged", visitor="b"),
        Step(Decided.MOVE, target="/?greenroom=move", visitor="b"),
        Step(Decided.ACTIVE),
    ],
    "more time": [
        Step(
            Decided.ADMITTED,
            change=room_of(session_extensions=2, disable_session_renewal=True),
        ),
        Step(Decided.SESSION, target="/?greenroom=session", wait_ms=20_000),
        Step(Decided.SESSION, PAGE, "POST", "/?greenroom=session"),
        Step(Decided.SESSION, target="/?greenroom=session.js", visitor="b"),
        Step(Decided.SESSION, PAGE, "POST", "/?greenroom=session", visitor="b"),
        Step(Decided.ACTIVE),
    ],
    "a calendar entry": [
        Step(
            Decided.ADMITTED,
            change=room_of(calendar_after_minutes=1),
        ),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.HELD, visitor="b", wait_ms=20_000),
        Step(Decided.CALENDAR, target="/?greenroom=calendar", visitor="b"),
    ],
    "who wants to be called": [
        Step(Decided.ADMITTED, change=room_of(call_after_minutes=1)),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.HELD, visitor="b", wait_ms=20_000),
        Step(Decided.CALL, target="/?greenroom=call", visitor="b"),
        Step(
            Decided.CALL,
            (*PAGE, (b"Greenroom-Call", b"{}")),
            "POST",
            "/?greenroom=call",
            visitor="b",
        ),
        Step(Decided.CALL, target="/?greenroom=call.forged", visitor="c"),
        Step(Decided.CALL, target="/?greenroom=call.worker", visitor="c"),
    ],
    "a host that is not for this site": [
        Step(Decided.UNKNOWN_HOST, host=b"other.example", change=only_known_hosts)
    ],
    "a session that the origin ends": [
        Step(Decided.ADMITTED, change=room_of(enabled_origin_commands=("revoke",))),
        Step(Decided.REVOKED, target="/revoke"),
        Step(Decided.ADMITTED, wait_ms=5_000),
    ],
    "the origin fails a visitor whose session ends": [
        Step(Decided.ADMITTED, change=room_of()),
        Step(Decided.REENTERED, change=fail_everybody, wait_ms=400_000),
        Step(Decided.ACTIVE),
    ],
    "the table of the line": [
        Step(Decided.ADMITTED, change=room_of(line_table=True)),
        Step(Decided.HELD, visitor="b"),
        Step(Decided.LINE_TABLE, target="/?greenroom=line", visitor="c"),
    ],
    "scripts of another origin": [
        Step(
            Decided.PREFLIGHT,
            PREFLIGHT,
            "OPTIONS",
            change=room_of(cors_origins=(SCRIPTS,), json_response_enabled=True),
        ),
        Step(Decided.ADMITTED),
        Step(Decided.PREFLIGHT, PREFLIGHT, "OPTIONS", visitor="b"),
        Step(Decided.PLACELESS, CALL, visitor="b"),
        Step(Decided.HELD, (*CALL, *JSON), visitor="b"),
        Step(Decided.HELD, (*CALL, *JSON), visitor="b"),
        Step(Decided.HELD, (*UPDATE, *CALL[:1]), visitor="b", wait_ms=3_000),
        Step(
            Decided.LINE_TABLE,
            CALL,
            target="/?greenroom=line",
            visitor="c",
            change=room_of(cors_origins=(SCRIPTS,), line_table=True),
        ),
        Step(Decided.PLACELESS, PREFLIGHT[1:], "OPTIONS", visitor="d"),
        Step(Decided.ENDED, LEAVE, "POST", visitor="a"),
    ],
    "a forged ticket": [Step(Decided.ADMITTED, (*PAGE, (b"Cookie", NAME + b"x" * 108)))],
    "something breaks": [Step(Decided.FAILED, change=broken)],
    "refused": [
        Step(None, host=b"a b"),
        Step(None, target="/a%5Cb"),
        Step(None, target="/a%00"),
        Step(None, target="http://other.example/"),
        Step(None, (*PAGE, (b"Host", b"twice.example"))),
        Step(None, method="TRACE"),
        Step(None, method="X" * 30),
        Step(None, target="/" + "x" * 9_000),
        Step(None, tuple((b"X-%d" % number, b"1") for number in range(101))),
    ],
}


def origin(_method: str, path: str) -> tuple[int, Pairs, bytes]:
    said = (b"revoke", b"unknown") if path == "/revoke" else ()
    command = [(b"Cf-Waiting-Room-Command", each) for each in said]
    return 200, ((b"X-Origin", b"yes"), *command), b"hello from the origin"


def ticket_of(site: Site, cookie: bytes) -> object:
    """What a Set-Cookie value holds: the ticket opened (nonces differ), and the attributes as they
    are.
    """
    value, _, rest = cookie.removeprefix(NAME).partition(b";")
    return (Sealer(site.ring).open(value, b"r", site.clock.ms) if value else value), rest


def told(site: Site, given: Given, decided: Decided | None) -> tuple[Any, ...]:
    if decided is None:  # how a refusal is worded is each front end's own
        return (given.status,)
    named = {
        (name.lower(), value) for name, value in given.headers if name.lower() not in NOT_COMPARED
    }
    return given.status, named, given.body, ticket_of(site, given.cookie)


def play_both(story: str, folder: Path, make: Callable[[DecisionService], Any]) -> tuple[Site, Any]:
    """Plays a story at a front end without HTTP and at the one that `make` makes, which must say
    the same; the latter and its site.
    """
    here, there = (
        Site(folder / side, small_room(total_active_users=1)) for side in ("here", "there")
    )
    fronts = PlainFrontEnd(here.decisions, origin), make(there.decisions)
    jars: tuple[dict[str, bytes], dict[str, bytes]] = {}, {}
    for number, step in enumerate(STORIES[story]):
        given = []
        for site, front, jar in zip((here, there), fronts, jars, strict=True):
            given.append(front.request(step.method, step.target, prepared(step, site, jar)))
            check(step, site, jar, given[-1], f"step {number}")
        if step.decided is None:
            assert 400 <= given[1].status < 500
        else:
            assert told(here, given[0], step.decided) == told(there, given[1], step.decided), (
                f"step {number}"
            )
    assert any(step.decided is Decided.FAILED for step in STORIES[story]) or not here.errors
    return there, fronts[1]
