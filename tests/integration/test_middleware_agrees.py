"""The same requests to an application behind the middleware as through a front end without HTTP:
the same decisions, the same answers.
"""

import asyncio
from io import BufferedReader, BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from admission_world import small_room
from front_end_stories import NAME, STORIES, origin, play_both
from middleware_fronts import EMPTY, AsgiFront, WsgiFront
from visitors import Site

from greenroom import asgi, wsgi
from greenroom.admission.ledger.failures import TURN_KEPT_MS
from greenroom.asgi import WaitingRoom
from greenroom.decision.observer import Decided
from greenroom.decision.render import OUTAGE
from greenroom.errors import InvalidConfig
from greenroom.runtime import embedded
from greenroom.wsgi import WaitingRoom as WsgiWaitingRoom

FRONTS = {"asgi": AsgiFront, "wsgi": WsgiFront}


@pytest.fixture(params=FRONTS)
def kind(request: Any) -> Any:
    return FRONTS[request.param]


@pytest.mark.parametrize("story", STORIES)
def test_the_middleware_and_a_front_end_without_http_say_the_same(
    story: str, kind: Any, tmp_path: Path
) -> None:
    _, front = play_both(story, tmp_path, lambda decisions: kind(decisions, origin))
    assert front.errors == []


def site_of(tmp_path: Path, kind: Any, answer: Any = origin) -> tuple[Site, Any]:
    site = Site(tmp_path, small_room(total_active_users=1))
    return site, kind(site.decisions, answer)


HOST = (b"Host", b"shop.example")
PAGE = (b"Accept", b"text/html")


def test_the_middleware_measures_how_documents_are_answered(kind: Any, tmp_path: Path) -> None:
    statuses = iter((200, 200, 404, 503, 200))

    def answering(_method: str, _path: str) -> Any:
        return next(statuses), (), b""

    site, front = site_of(tmp_path, kind, answering)
    (room_id,) = site.decisions.table.rooms
    requests = front.room.embedded.own_requests
    ticket = (b"Cookie", front.request("GET", "/", (HOST, PAGE)).cookie.partition(b";")[0])
    for accept in (PAGE, PAGE, PAGE, (b"Accept", b"image/png")):
        front.request("GET", "/", (HOST, accept, ticket))
    with pytest.raises((StopIteration, RuntimeError)):
        front.request("GET", "/", (HOST, PAGE, ticket))
    assert requests.documents.of(room_id).failed == 2, "503 and an exception"
    assert requests.documents.of(room_id).histogram.total == 3, "an image is no document"
    assert requests.pending_documents() == {}


@pytest.mark.parametrize(
    ("accept", "status", "safe"),
    [(PAGE, 500, True), (PAGE, 503, True), (PAGE, 501, False), (PAGE, 404, False),
     ((b"Accept", b"image/png"), 500, False)],
)  # fmt: skip
def test_a_document_that_the_application_fails_keeps_the_turn(
    kind: Any, tmp_path: Path, accept: Any, status: int, safe: bool
) -> None:
    statuses = iter((200, status, 200))
    site, front = site_of(tmp_path, kind, lambda *_: (next(statuses), (), b""))
    session_ms = site.rooms[0].session_ms
    ticket = (b"Cookie", front.request("GET", "/", (HOST, PAGE)).cookie.partition(b";")[0])
    site.clock.ms += 30_000
    failed = front.request("GET", "/", (HOST, accept, ticket))
    lasts_s = int(failed.cookie.partition(b"Max-Age=")[2].partition(b";")[0] or 0)
    assert (1000 * lasts_s >= session_ms + TURN_KEPT_MS) == safe, "it outlives the session"
    site.clock.ms += session_ms + 60_000
    for ledger in site.ledgers.values():
        ledger.tick()
    front.request("GET", "/", (HOST, PAGE, (b"Cookie", failed.cookie.partition(b";")[0])))
    assert (site.events_seen[-1].decided is Decided.REENTERED) == safe
    assert front.errors == []


def test_what_the_application_has_not_begun_to_answer_is_pending(tmp_path: Path) -> None:
    pending: list[Any] = []
    site, front = site_of(tmp_path, WsgiFront)
    (room_id,) = site.decisions.table.rooms
    requests = front.room.embedded.own_requests

    def streaming(_environ: Any, start_response: Any) -> Any:
        pending.append(requests.pending_documents())
        start_response("200 OK", [])
        yield b"a page"

    ticket = (b"Cookie", front.request("GET", "/", (HOST, PAGE)).cookie.partition(b";")[0])
    front.room.app = streaming
    assert front.request("GET", "/", (HOST, PAGE, ticket)).body == b"a page"
    assert pending[0][room_id].total == 1
    assert requests.pending_documents() == {}
    assert requests.documents.of(room_id).histogram.total == 2


def test_a_body_that_is_read_into_a_buffer_is_timed_too() -> None:
    passed = SimpleNamespace(waits=list, received=lambda *, cut_off: cuts.append(cut_off))
    cuts: list[bool] = []
    environ = {"wsgi.input": BufferedReader(BytesIO(b"hello")), "CONTENT_LENGTH": "8"}
    body, buffer = wsgi._TimedBody(environ, passed), bytearray(4)  # type: ignore[arg-type]
    assert [body.readinto(buffer) for _ in range(2)] == [4, 1]
    assert (buffer, cuts) == (b"oell", [False, True])
    for odd in ("\xb2", "-1", ""):
        wsgi._TimedBody({**environ, "CONTENT_LENGTH": odd}, passed)  # type: ignore[arg-type]


class SlowBody:
    """Twice five bytes, ten seconds each; `broken` ends after the first."""

    def __init__(self, clock: list[float], requests: Any, *, broken: bool) -> None:
        self._clock, self._requests, self._broken = clock, requests, broken
        self.pending: list[Any] = []
        self._left = 2

    def read(self, _size: int = -1) -> bytes:
        self._clock[0] += 10
        self._left -= 1
        self.pending.append(self._requests.pending_documents())
        return b"" if self._broken and not self._left else b"hello"

    def message(self) -> Any:
        piece = self.read()
        if not piece:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": self._left > 0}


@pytest.mark.parametrize("broken", [False, True])
def test_the_time_of_an_upload_is_the_visitors_and_an_upload_broken_off_is_no_failure(
    kind: Any, broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    for module in (embedded, asgi, wsgi):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    site, front = site_of(tmp_path, kind)
    (room_id,) = site.decisions.table.rooms
    requests = front.room.embedded.own_requests
    ticket = (b"Cookie", front.request("GET", "/", (HOST, PAGE)).cookie.partition(b";")[0])
    body = SlowBody(clock, requests, broken=broken)
    during: list[Any] = []

    def answers(cut_off: bool) -> int:
        clock[0] += 0.3
        during.append(requests.pending_documents())
        return 500 if cut_off else 200

    async def asgi_app(_scope: Any, receive: Any, send: Any) -> None:
        clock[0] += 0.1
        while (message := await receive()).get("more_body"):
            pass
        status = answers(message["type"] == "http.disconnect")
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def wsgi_app(environ: Any, start_response: Any) -> Any:
        clock[0] += 0.1
        pieces = [environ["wsgi.input"].read(5) for _ in range(2)]
        start_response(f"{answers(b'' in pieces)} Status", [])
        return []

    front.room.app = asgi_app if kind is AsgiFront else wsgi_app
    front.body, front.length = (body.message if kind is AsgiFront else body), "10"
    answer = front.request("POST", "/", (HOST, PAGE, ticket))
    documents = requests.documents.of(room_id)
    assert body.pending == [{}, {}], "nobody waits for the application"
    if broken:
        assert (answer.status, documents.failed, documents.histogram.total) == (500, 0, 1)
        assert during == [{}]
    else:
        assert during[0][room_id].sum_ms == pytest.approx(400), "before and after the body"
        assert (documents.failed, documents.histogram.total) == (0, 2)
        assert documents.histogram.sum_ms == pytest.approx(400)
    assert requests.pending_documents() == {}


def test_the_application_never_sees_a_ticket_and_never_sets_one(kind: Any, tmp_path: Path) -> None:
    def forging(_method: str, _path: str) -> Any:
        cookies = ((b"Set-Cookie", NAME + b"forged; Path=/"), (b"Set-Cookie", b"own=1; Path=/"))
        return (
            200,
            (
                *cookies,
                (b"Cache-Control", b"public, max-age=60"),
                (b"Surrogate-Control", b"max-age=60"),
            ),
            b"hello",
        )

    _, front = site_of(tmp_path, kind, forging)
    first = front.request("GET", "/", (HOST, PAGE, (b"Cookie", b"own=1")))
    assert [value for name, value in first.headers if name.lower() == b"set-cookie"] == [
        b"own=1; Path=/",
        first.cookie,
    ]
    caching = [
        value
        for name, value in first.headers
        if name.lower() in (b"cache-control", b"surrogate-control")
    ]
    assert caching == [b"private, max-age=60"], "an answer with a ticket is not for shared caches"
    ticket = first.cookie.partition(b";")[0]
    front.request("GET", "/", (HOST, PAGE, (b"Cookie", b"own=1; " + ticket)))
    front.request("GET", "/", (HOST, PAGE, (b"Cookie", ticket)))
    dashboards = b"own=1; greenroom_session=a; __Host-greenroom_device=b; greenroom_oidc=c"
    front.request("GET", "/", (HOST, PAGE, (b"Cookie", dashboards + b"; " + ticket)))
    seen = [dict(headers).get(b"cookie") for headers in front.served]
    assert seen == [b"own=1", b"own=1", None, b"own=1"]


@pytest.mark.parametrize(
    "target",
    [
        "/open/../shop",
        "//shop",
        "/%2e%2e/shop",
        "/shop%2fb",
        "/a%5cb",
        "/shop;b=c",
        "/a%00",
        "/shop%252fb",
        "/./shop",
        "*",
    ],
)
def test_a_path_that_could_be_read_in_two_ways_is_refused(
    target: str, kind: Any, tmp_path: Path
) -> None:
    site = Site(tmp_path, small_room(total_active_users=1, path="/shop"))
    front = kind(site.decisions, origin)
    assert front.request("GET", target, (HOST, PAGE)).status == 400
    assert front.served == []


def test_what_is_matched_is_the_path_that_is_served_when_other_middleware_rewrote_it(
    tmp_path: Path,
) -> None:
    """The room covers /shop; the raw path says /open, and the application would serve /shop."""
    site = Site(tmp_path, small_room(total_active_users=1, path="/shop"))
    front = AsgiFront(site.decisions, origin)
    before = front.room

    async def rewriting(scope: Any, receive: Any, send: Any) -> None:
        await before({**scope, "path": "/shop"}, receive, send)

    front.room = rewriting  # type: ignore[assignment]
    front.request("GET", "/open", (HOST, PAGE))
    assert site.events_seen[-1].decided is Decided.ADMITTED
    front.request("GET", "/open", (HOST, PAGE))
    assert site.events_seen[-1].decided is Decided.HELD


def test_a_server_without_raw_paths_is_matched_by_what_it_serves(tmp_path: Path) -> None:
    site = Site(tmp_path, small_room(total_active_users=1, path="/caf%C3%A9"))
    front = AsgiFront(site.decisions, origin)
    before = front.room

    async def without(scope: Any, receive: Any, send: Any) -> None:
        await before(
            {name: value for name, value in scope.items() if name != "raw_path"}, receive, send
        )

    front.room = without  # type: ignore[assignment]
    assert front.request("GET", "/caf%C3%A9/x", (HOST, PAGE)).cookie
    assert front.request("GET", "/open", (HOST, PAGE)).cookie == b""


def test_a_connection_of_an_unknown_kind_does_not_pass() -> None:
    reached = []

    async def app(*_: Any) -> None:
        reached.append(1)

    with pytest.raises(ValueError, match="webtransport"):
        asyncio.run(WaitingRoom(app, EMPTY)({"type": "webtransport"}, app, app))
    assert reached == []


def test_an_error_in_the_decision_holds_the_visitor(kind: Any, tmp_path: Path) -> None:
    _, front = site_of(tmp_path, kind)

    def fail(*_: Any) -> None:
        raise RuntimeError("broken on purpose")

    requests = front.room.embedded.own_requests
    requests._arrival = fail
    given = front.request("GET", "/", (HOST, PAGE))
    assert (given.status, given.body) == (503, OUTAGE.body)
    assert front.served == []


def test_a_wrong_configuration_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="unknown"):
        WaitingRoom(lambda *_: None, {"data": str(tmp_path), "romms": []})  # type: ignore[arg-type,return-value]


def test_a_rule_about_the_listener_looks_at_the_one_that_each_request_came_to(
    tmp_path: Path,
) -> None:
    rules = [{"expression": "cf.edge.server_port == 8001", "action": "bypass_waiting_room"}]
    limits = {"total_active_users": 200, "new_users_per_minute": 200}
    configuration = {
        "data": str(tmp_path),
        "rooms": [{"name": "main", "host": "*", **limits, "rules": rules}],
    }
    room = WsgiWaitingRoom(
        lambda _environ, start_response: [start_response("200 OK", []) or b""], configuration
    )
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "192.0.2.1",
        "HTTP_HOST": "shop.example",
    }
    tickets = []
    for port in ("8001", "8000", "8001"):
        found: list[Any] = []
        listener = {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": port, "wsgi.url_scheme": "http"}
        list(
            room(
                {**environ, **listener}, lambda _status, headers, found=found: found.extend(headers)
            )
        )
        tickets.append("Set-Cookie" in dict(found))
    room.close()
    assert tickets == [False, True, False], "only the port of the rule goes by the room"
