"""Scripts of other origins (`cors_origins`): their preflights go past the room, and only those;
they can read that a visitor waits.
"""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from hypothesis import given
from hypothesis import strategies as st
from visitors import NAVIGATES, Browser, Site

from greenroom.decision.explain import RoomDefinition, explain
from greenroom.decision.render import origin_error
from greenroom.decision.verdict import Forward
from greenroom.errors import InvalidConfig
from greenroom.model.answer import Answer
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.route import normal_origin
from greenroom.model.visit import Arrival
from greenroom.request.cross_origin import NOT_IN_PREFLIGHTS, is_preflight
from greenroom.rules import NOTHING_KNOWN

ORIGIN = "https://www.example.com"
LISTED = (b"origin", ORIGIN.encode())
METHOD = (b"access-control-request-method", b"PUT")
PREFLIGHT = (
    LISTED,
    METHOD,
    (b"access-control-request-headers", b"content-type"),
    (b"accept", b"*/*"),
    (b"sec-fetch-mode", b"cors"),
)
CALL = (LISTED, (b"accept", b"application/json"), (b"sec-fetch-dest", b"empty"))
UPDATE = (LISTED, (b"greenroom-update", b"1"))
Pairs = tuple[tuple[bytes, bytes], ...]


def site_of(folder: Path, **changes: Any) -> Site:
    return Site(
        folder,
        small_room(
            **{
                "total_active_users": 1,
                "new_users_per_minute": 1,
                "cors_origins": (ORIGIN,),
                **changes,
            }
        ),
    )


def full(folder: Path, **changes: Any) -> Site:
    site = site_of(folder, **changes)
    Browser(site).visit()
    return site


def access(answer: object) -> tuple[bytes | None, bytes | None, bytes | None]:
    """What the answer allows: the origin, credentials, headers."""
    assert isinstance(answer, Answer)
    names = (
        b"Access-Control-Allow-Origin",
        b"Access-Control-Allow-Credentials",
        b"Access-Control-Expose-Headers",
    )
    return tuple(answer.headers.get(name) for name in names)  # type: ignore[return-value]


ALLOWED = (ORIGIN.encode(), b"true", b"Retry-After, Refresh")
NOT_ALLOWED = (None, None, None)
ROOMS = {
    "fifo": {},
    "random": {"queueing_method": "random"},
    "passthrough": {"queueing_method": "passthrough"},
    "reject": {"queueing_method": "reject"},
    "queue_all": {"queue_all": True},
    "without provisional sessions": {"provisional_sessions": False},
    "with JSON": {"json_response_enabled": True},
    "with one status for all": {"same_status_for_all": True},
    "confirming": {"confirm_newcomers": True},
}


@pytest.mark.parametrize("changes", ROOMS.values(), ids=ROOMS.keys())
def test_a_preflight_of_a_listed_origin_goes_on_and_is_no_visitor(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    site = full(tmp_path, **changes)
    before, visitor = site.ledgers["r"].gauges(), Browser(site)
    for _ in range(50):
        reply = visitor.visit(method="OPTIONS", headers=PREFLIGHT)
        assert isinstance(reply, Forward)
        assert (reply.ticket, reply.set_cookie, reply.pass_cookie, visitor.jar) == (
            None,
            b"",
            b"",
            {},
        )
    assert site.ledgers["r"].gauges() == before
    assert site.counted.of("r")["preflight"] == 50
    assert site.errors == []


def test_a_suspended_room_lets_it_by_as_all_else(tmp_path: Path) -> None:
    site = site_of(tmp_path, suspended=True)
    assert isinstance(Browser(site).visit(method="OPTIONS", headers=PREFLIGHT), Forward)
    assert site.counted.of("r") == {"suspended": 1}


NOT_PREFLIGHTS: dict[str, Pairs] = {
    "another origin": ((b"origin", b"https://evil.example"), METHOD),
    "null": ((b"origin", b"null"), METHOD),
    "no origin": (METHOD,),
    "a host that ends like it": ((b"origin", b"https://evilwww.example.com"), METHOD),
    "a host below it": ((b"origin", b"https://a.www.example.com"), METHOD),
    "a host that begins like it": ((b"origin", b"https://www.example.com.evil.example"), METHOD),
    "a user": ((b"origin", b"https://www.example.com@evil.example"), METHOD),
    "its parent": ((b"origin", b"https://example.com"), METHOD),
    "upper case": ((b"origin", b"https://WWW.example.com"), METHOD),
    "another scheme": ((b"origin", b"http://www.example.com"), METHOD),
    "another port": ((b"origin", b"https://www.example.com:8443"), METHOD),
    "the usual port, which browsers leave out": (
        (b"origin", b"https://www.example.com:443"),
        METHOD,
    ),
    "a slash": ((b"origin", b"https://www.example.com/"), METHOD),
    "a dot at the end": ((b"origin", b"https://www.example.com."), METHOD),
    "a list": ((b"origin", b"https://www.example.com, https://evil.example"), METHOD),
    "bytes above ASCII": ((b"origin", b"https://www.example.com\xff"), METHOD),
    "two origins": (LISTED, (b"origin", b"https://evil.example"), METHOD),
    "the origin twice": (LISTED, LISTED, METHOD),
    "no method asked for": (LISTED,),
    "two methods asked for": (LISTED, METHOD, (b"access-control-request-method", b"GET")),
    "a body": (*PREFLIGHT, (b"content-length", b"3")),
    "a body of unclear length": (*PREFLIGHT, (b"content-length", b"+0")),
    "a body in chunks": (*PREFLIGHT, (b"transfer-encoding", b"chunked")),
    "a WebSocket": (*PREFLIGHT, (b"upgrade", b"websocket"), (b"connection", b"upgrade")),
    **{name.decode(): (*PREFLIGHT, (name, b"x")) for name in sorted(NOT_IN_PREFLIGHTS)},
    **{
        name: (*PREFLIGHT, (name.encode(), b"GET"))
        for name in ("x-http-method-override", "x-method-override", "x-http-method", "x-method")
    },
}


@pytest.mark.parametrize("headers", NOT_PREFLIGHTS.values(), ids=NOT_PREFLIGHTS.keys())
def test_what_no_browser_sends_for_a_listed_origin_is_held_as_ever(
    headers: Pairs, tmp_path: Path
) -> None:
    site = full(tmp_path)
    reply = Browser(site).visit(method="OPTIONS", headers=headers)
    assert isinstance(reply, Answer)
    assert site.counted.of("r").get("preflight") is None
    sent = [value for name, value in headers if name == b"origin"]
    assert access(reply) == (ALLOWED if sent == [ORIGIN.encode()] else NOT_ALLOWED)
    assert b"Origin" in (reply.headers.get(b"Vary") or b"").split(b", ")


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "options", "PROPFIND"]
)
def test_no_other_method_goes_past_the_room(method: str, tmp_path: Path) -> None:
    site = full(tmp_path)
    assert isinstance(Browser(site).visit(method=method, headers=PREFLIGHT), Answer)


def test_the_options_of_the_whole_server_are_no_preflight() -> None:
    asked = Arrival("OPTIONS", "http", "shop.example", "/", "", PREFLIGHT, "192.0.2.1", target=b"*")
    assert not is_preflight(asked, (ORIGIN,))
    assert is_preflight(replace(asked, target=b"/"), (ORIGIN,))


def test_a_room_that_lists_no_origin_answers_as_ever(tmp_path: Path) -> None:
    site = full(tmp_path, cors_origins=())
    reply = Browser(site).visit(method="OPTIONS", headers=PREFLIGHT)
    assert access(reply) == NOT_ALLOWED
    assert isinstance(reply, Answer)
    assert b"Origin" not in (reply.headers.get(b"Vary") or b"")


NAMES = st.sampled_from(
    [b"origin", METHOD[0], b"content-length", b"accept", b"via", *sorted(NOT_IN_PREFLIGHTS)]
)
VALUES = st.sampled_from([ORIGIN.encode(), b"PUT", b"0", b"1", b"null", b""])


@given(
    st.sampled_from(["OPTIONS", "GET", "POST"]),
    st.lists(st.tuples(NAMES, VALUES), max_size=6),
    st.booleans(),
)
def test_a_preflight_has_a_listed_origin_one_method_no_body_and_no_credentials(
    method: str, pairs: Any, by_name: bool
) -> None:
    headers = tuple(pairs)
    facts = dict(headers) if by_name and len(dict(headers)) == len(headers) else None
    asked = Arrival(method, "http", "shop.example", "/", "", headers, "192.0.2.1", facts=facts)
    names = [name for name, _ in headers]
    wanted = (
        method == "OPTIONS"
        and [value for name, value in headers if name == b"origin"] == [ORIGIN.encode()]
        and names.count(METHOD[0]) == 1
        and not set(names) & NOT_IN_PREFLIGHTS
        and {value for name, value in headers if name == b"content-length"} <= {b"0"}
    )
    assert is_preflight(asked, (ORIGIN,)) is wanted


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"json_response_enabled": True},
        {"queue_all": True},
        {"custom_page_html": "<p>{{waitTime}}"},
    ],
)
@pytest.mark.parametrize(
    "headers", [CALL, UPDATE, (*NAVIGATES, LISTED), (LISTED, (b"sec-fetch-dest", b"image"))]
)
def test_every_answer_to_one_who_waits_can_be_read_by_a_script_of_a_listed_origin(
    changes: dict[str, Any], headers: Pairs, tmp_path: Path
) -> None:
    site = full(tmp_path, **changes)
    visitor = Browser(site)
    for _ in range(3):
        reply = visitor.visit(headers=headers)
        assert isinstance(reply, Answer)
        assert access(reply) == ALLOWED
        assert b"Origin" in (reply.headers.get(b"Vary") or b"").split(b", ")
        visitor.wait()
    other = tuple(
        (name, b"https://evil.example" if name == b"origin" else value) for name, value in headers
    )
    assert access(Browser(site).visit(headers=other)) == NOT_ALLOWED


def test_the_let_in_update_the_farewell_and_an_error_can_be_read_each_by_its_own_origin(
    tmp_path: Path,
) -> None:
    site = site_of(tmp_path, cors_origins=(ORIGIN, "http://localhost:3000"))
    visitor = Browser(site)
    assert isinstance(visitor.visit(), Forward)
    for _ in range(2):  # the second time, what a session was given last is remembered
        assert access(visitor.visit(headers=UPDATE)) == ALLOWED
        assert (
            access(visitor.visit(headers=((b"origin", b"http://localhost:3000"), UPDATE[1])))[0]
            == b"http://localhost:3000"
        )
        assert access(visitor.visit(headers=UPDATE[1:])) == NOT_ALLOWED
    same = (b"origin", b"http://shop.example")
    site.configure(small_room(total_active_users=1, cors_origins=("http://shop.example",)))
    for headers in (((b"greenroom-update", b"leave"), same), (*NAVIGATES, same)):
        reply = visitor.visit(method="POST", query="greenroom=leave", headers=headers)
        assert access(reply)[0] == b"http://shop.example"

    def fail(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    site.configure(small_room(total_active_users=1, cors_origins=(ORIGIN,)))
    site.change_ledger("arrive_now", fail)
    assert access(Browser(site).visit(headers=(*NAVIGATES, LISTED))) == ALLOWED


def test_the_table_of_the_line_varies_by_origin_because_shared_caches_keep_it(
    tmp_path: Path,
) -> None:
    site = full(tmp_path, line_table=True)
    for headers, allowed in (((LISTED,), ALLOWED), ((), NOT_ALLOWED)):
        reply = Browser(site).visit(query="greenroom=line", headers=headers)
        assert isinstance(reply, Answer)
        assert (access(reply), reply.headers.get(b"Vary")) == (allowed, b"Origin")


@pytest.mark.parametrize("changes", [{}, {"suspended": True}])
def test_an_origin_that_fails_is_told_to_the_script(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    site = site_of(tmp_path, **changes)
    visitor = Browser(site)
    forward = visitor.visit(headers=(*NAVIGATES, LISTED))
    assert isinstance(forward, Forward)
    assert access(origin_error(502, visitor.arrival(headers=CALL), b"", forward.page)) == ALLOWED


def test_explain_tells_it() -> None:
    room = Room(
        name="r",
        host="shop.example",
        total_active_users=1,
        new_users_per_minute=1,
        cors_origins=(ORIGIN,),
    )

    def told(method: str, headers: Pairs) -> Any:
        arrival = Arrival(method, "https", "shop.example", "/", "", headers, "192.0.2.1")
        return explain(arrival, [RoomDefinition(room)], {}, NOTHING_KNOWN, 0, {})

    preflight = told("OPTIONS", PREFLIGHT)
    assert (preflight.result, preflight.word) == ("origin", "preflight")
    assert told("OPTIONS", (*PREFLIGHT, (b"authorization", b"x"))).word != "preflight"
    assert f"Scripts of {ORIGIN} can read the answer (cors_origins)." in told("GET", CALL).notes


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("https://www.example.com", "https://www.example.com"),
        ("HTTPS://WWW.Example.com:443/", "https://www.example.com"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://a.example:80", "http://a.example"),
        ("https://a.example:80", "https://a.example:80"),
        ("http://127.0.0.1:08080", "http://127.0.0.1:8080"),
    ],
)
def test_origins_are_kept_as_browsers_send_them(written: str, normal: str) -> None:
    assert normal_origin(written) == normal
    room = small_room(cors_origins=(written,))
    assert room.cors_origins == (normal,)
    assert dataclasses.replace(room, name="other").cors_origins == (normal,)


@pytest.mark.parametrize(
    "written",
    [
        "*", "null", "", "www.example.com", "//www.example.com", "https://*.example.com", "https://a.example/path", "https://a.example?x",
        "https://u@a.example", "https://a.example:0", "https://a.example:65536", "https://a.example.", "https://a..example", "ftp://a.example",
        "https://-a.example", "https://bücher.example", "https://a.example\n", " https://a.example", "https://a.example,https://b.example",
    ],
)  # fmt: skip
def test_what_is_no_single_origin_is_refused(written: str) -> None:
    with pytest.raises(InvalidConfig, match=r"cors_origins\[0\]: must be an origin such as"):
        small_room(cors_origins=(written,))


def test_origins_are_few_and_named_once() -> None:
    with pytest.raises(
        InvalidConfig, match=r"cors_origins\[1\]: https://a.example is listed twice"
    ):
        small_room(cors_origins=("https://a.example", "https://A.example:443"))
    many = tuple(f"https://a{number}.example" for number in range(21))
    assert len(small_room(cors_origins=many[:20]).cors_origins) == 20
    with pytest.raises(InvalidConfig, match="at most 20 entries"):
        small_room(cors_origins=many)
