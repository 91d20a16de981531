"""Paths with several readings: however an origin reads the bytes that it gets, the room of what it
serves was asked.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.admission.decide import WELL_KNOWN_RULE, bypassed, is_well_known
from greenroom.model.route import Route
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.request.canonical import Refusal, Target, canonical_target
from greenroom.request.path_readings import (
    READINGS_MAX,
    USUAL,
    PathPolicies,
    PathPolicy,
    has_readings,
    read_target,
    readings,
)
from greenroom.request.routing import RouteTable
from greenroom.rules import RequestFacts, compile_rule

PASS, STRICT = PathPolicy("pass", False), PathPolicy("refuse", True)
ROOMS = ("/shop", "/open/inner", "/wiki")
TABLE = RouteTable([(Route("a", path), False, path) for path in ROOMS])
PIECES = (
    "/",
    "/",
    "shop",
    "open",
    "inner",
    "wiki",
    "x",
    "..",
    ".",
    ";",
    ";v=1",
    "%2F",
    "%2f",
    "%3B",
    "%252F",
    "%25252F",
    "%2e",
    "%2E%2e",
    "//",
    "%3F",
    "%253f",
    "%253%46",
    "%23",
    "é",
)
PATHS = st.lists(st.sampled_from(PIECES), max_size=9).map(lambda pieces: "/" + "".join(pieces))


def dots(path: str) -> str:
    """As browsers and most servers: what leads above the root stays at the root."""
    out: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            del out[-1:]
        elif segment != ".":
            out.append(segment)
    return "/" + "/".join(out)


# What programs do, written down without the code under test: unquote is Python's, the rest are
# one-liners of real servers.
PROGRAM: list[Callable[[str], str]] = [
    unquote,
    lambda path: re.sub("/{2,}", "/", path),
    dots,
    lambda path: "/".join(segment.split(";")[0] for segment in path.split("/")),
    lambda path: path[: path.rfind("/") + 1] + path[path.rfind("/") + 1 :].split(";")[0],
    lambda path: path.split(";")[0] or "/",
    lambda path: re.split("[?#]", path)[0],
]
PROGRAMS = st.lists(st.sampled_from(PROGRAM), max_size=6)


def read_by(program: list[Callable[[str], str]], raw: bytes) -> str:
    path = raw.partition(b"?")[0].decode()
    for step in program:
        path = step(path)
    return path


def rooms_asked(target: Target) -> set[str]:
    return {
        room
        for path in target.readings or (target.path,)
        if (room := TABLE.find("a", path)) is not None
    }


@given(
    PATHS,
    PROGRAMS,
    st.sampled_from([PASS, PathPolicy("pass", True), PathPolicy("refuse", False), USUAL, STRICT]),
)
@example("/x%2F..%2Fshop/y", [unquote, dots], PASS)
@example("/x/..;/shop", [PROGRAM[3], dots], PASS)
@example("/open%252Finner", [unquote, unquote], PASS)
@example("/open//inner", [PROGRAM[1]], PathPolicy("refuse", False))
def test_no_origin_serves_a_page_of_a_room_that_was_not_asked(
    path: str, program: list[Callable[[str], str]], policy: PathPolicy
) -> None:
    target = read_target(path.encode(), policy)
    if isinstance(target, Refusal):
        return
    asked = rooms_asked(target)
    served = TABLE.find("a", read_by(program, target.raw))
    if policy == STRICT:
        # what has one reading is sent in its one form: the law for it is that of
        # test_request_target_laws
        program = []
        served = TABLE.find("a", target.path)
    assert served is None or served in asked, (
        f"{target.raw!r} is served by {served} as {read_by(program, target.raw)}"
    )


@given(PATHS, PROGRAMS)
@example("/open/%2F..%2F..%2Fshop", [unquote, dots])
def test_a_rule_lets_by_only_what_it_names_in_every_reading(
    path: str, program: list[Callable[[str], str]]
) -> None:
    target = read_target(path.encode(), PASS)
    if isinstance(target, Refusal) or not target.readings:
        return
    rule = Rule(expression="true")
    arrival = Arrival(
        "GET", "http", "a", target.path, "", (), "192.0.2.1", readings=target.readings
    )
    if bypassed(lambda one, _: rule if f"{one.path}/".startswith("/open/") else None, arrival, 0):
        assert f"{read_by(program, target.raw)}/".startswith("/open/")


@given(PATHS)
def test_what_passes_goes_on_as_it_came_and_what_every_program_reads_alike_in_its_one_form(
    path: str,
) -> None:
    raw = path.encode() + b"?q=1"
    target = read_target(raw, PASS)
    strict = canonical_target(raw)
    assert read_target(raw, STRICT) == strict
    if isinstance(target, Refusal):
        return
    assert target.raw == (raw if target.readings else strict.raw)
    assert len(target.readings) <= READINGS_MAX
    assert target.readings[:1] in ((), (target.path,))
    if isinstance(strict, Target) and not has_readings(raw, strict):
        assert target == strict


@given(
    st.lists(
        st.sampled_from(["%00", "%0A", "%5C", "%255C", "%FF", "%C2%85", "\\", "%", "\x80", " "]),
        min_size=1,
        max_size=2,
    ),
    PATHS,
)
def test_what_no_reading_makes_harmless_is_refused_everywhere(odd: list[str], path: str) -> None:
    found = read_target((path + "".join(odd)).encode("latin-1"), PASS)
    assert isinstance(found, Refusal)
    assert found.status == 400


def test_a_path_with_too_many_readings_or_too_long_is_refused() -> None:
    assert isinstance(readings(b"/%" + b"25" * 40 + b"2Fx"), Refusal)
    assert readings(b"/" + b"a" * 4_000 + b"%2F") == Refusal(
        414, "a path with several readings is longer than 2048 bytes"
    )


@given(PATHS, PROGRAMS, st.sampled_from(["/", "/shop", "/open/inner", "/x", "/wiki"]))
@example("/shop%3Fx", [unquote, PROGRAM[6]], "/wiki")
@example("/shop;v=1", [], "/shop")
@example("//shop", [], "/x")
@example("/open/%2F..%2F..%2Fshop", [unquote, dots], "/open/inner")
def test_what_passes_by_itself_has_one_room_and_one_answer_of_the_rules_for_every_program(
    path: str, program: list[Callable[[str], str]], by: str
) -> None:
    def place(path: str) -> tuple[str | None, bool]:
        return TABLE.find("a", path), f"{path}/".startswith(by.rstrip("/") + "/")

    target = read_target(path.encode(), USUAL)
    if isinstance(target, Refusal) or not target.readings:
        return
    assert target.otherwise is not None
    judged = {place(reading) for reading in target.readings}
    if len(judged) == 1:
        assert target.raw == path.encode()
        assert place(read_by(program, target.raw)) in judged
    elif isinstance(target.otherwise, Target):
        assert target.otherwise == canonical_target(path.encode())
        assert not has_readings(target.otherwise.raw, target.otherwise)


@given(PATHS)
def test_everything_that_has_one_form_is_served_by_default_but_for_a_hidden_end(path: str) -> None:
    strict, usual = canonical_target(path.encode()), read_target(path.encode())
    if isinstance(strict, Target) and not re.search("%(25)*(3[Ff]|23)", strict.path):
        assert strict == usual or (isinstance(usual, Target) and usual.otherwise == strict)


def test_raw_utf_8_in_a_path_passes_as_it_came_and_is_matched_in_its_escaped_form() -> None:
    raw = "/köln/x?q=ö".encode()
    found = read_target(raw)
    assert isinstance(found, Target)
    assert (found.path, found.raw, found.readings) == ("/k%C3%B6ln/x", raw, ("/k%C3%B6ln/x",))
    assert isinstance(read_target(raw, STRICT), Refusal)
    assert isinstance(read_target(b"/k\xf6ln"), Refusal)
    assert isinstance(read_target("/a\u0085b".encode()), Refusal)


def test_a_query_in_utf_8_passes_as_it_came_where_the_host_lets_it() -> None:
    raw = "/a?title=Köln".encode()
    found = read_target(raw, PASS)
    assert found == Target("/a", "title=Köln", raw)
    assert isinstance(read_target(raw, STRICT), Refusal)
    assert isinstance(read_target(b"/a?x=\xff", PASS), Refusal)
    assert isinstance(read_target(b"/a?x=\xc3\xa4\x01", PASS), Refusal)


def test_the_smallest_zone_around_a_host_says_how_its_paths_are_taken() -> None:
    policies = PathPolicies(STRICT, {"example.com": PASS, "strict.example.com": STRICT})
    assert [
        policies.of(host)
        for host in ("a.example.com", "strict.example.com", "b.strict.example.com", "example.org")
    ] == [
        PASS,
        STRICT,
        STRICT,
        STRICT,
    ]


@given(
    st.one_of(
        PATHS,
        st.sampled_from(
            [
                "/robots.txt",
                "/robots.txt/",
                "/.well-known/acme-challenge/x",
                "/.well-known/acme-challenge",
                "/Robots.txt",
            ]
        ),
    )
)
def test_the_default_rule_is_the_expression_that_is_shown(path: str) -> None:
    target = canonical_target(path.encode())
    if isinstance(target, Refusal):
        return
    arrival = Arrival("GET", "http", "a", target.path, "", (), "192.0.2.1")
    holds = compile_rule(WELL_KNOWN_RULE.expression, {})(RequestFacts(arrival, 0, None))
    assert is_well_known(arrival) == holds
