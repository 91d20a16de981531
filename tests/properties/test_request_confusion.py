"""No visitor passes by a room by spelling its path differently: no server that reads a forwarded
target its own way reaches the room's pages.

`readings` plays every such server at once: decoding once more, taking backslashes for slashes,
cutting path parameters, resolving dots before or after, merging slashes, ending a string at NUL, in
every order.
"""

import re
from urllib.parse import unquote_to_bytes

from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from greenroom.model.route import Route
from greenroom.request.canonical import Target
from greenroom.request.path_readings import read_target
from greenroom.request.routing import RouteTable

ROOM = RouteTable([(Route("*", "/shop"), False, "room")])
OPEN = b"/about"
STEPS_MAX = 6


def without_dots(path):
    kept = []
    for segment in path.split(b"/")[1:]:
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
    return b"/" + b"/".join(kept)


HABITS = [
    unquote_to_bytes,
    lambda path: path.replace(b"\\", b"/"),
    lambda path: re.sub(rb";[^/]*", b"", path),
    lambda path: path.partition(b";")[0],
    lambda path: re.split(rb"[?#]", path)[0],
    lambda path: re.sub(rb"/+", b"/", path),
    without_dots,
    lambda path: path.partition(b"\0")[0],
    lambda path: re.sub(rb"[\x00-\x20\x7f]", b"", path) if b"%20" not in path else path,
    lambda path: re.sub(rb"[\t\r\n]", b"", path),
]


def readings(path):
    """What some server somewhere might take this path for."""
    found = {path}
    latest = {path}
    for _ in range(STEPS_MAX):
        latest = {habit(one) for one in latest for habit in HABITS if one.startswith(b"/")} - found
        found |= latest
        if not latest:
            break
    return found


def reaches_the_room(path):
    return any(one == b"/shop" or one.startswith(b"/shop/") for one in readings(path))


PIECES = [
    b"/", b"//", b"/.", b"/..", b"..", b".", b"%2e", b"%2E%2e", b"%252e", b"%2f", b"%252f", b"%5c", b"%255c", b"\\", b";", b";x", b"%3b",
    b"%253b", b"%00", b"shop", b"%73hop", b"%2573hop", b"s%68op", b"sh%256fp", b"about", b"x", b"%09", b"%0a", b"%25", b"%2500", b"..;",
    b"%2e%2e;", b"%", b"%2", b"?", b"#", b"+", b"%3f", b"%253F", b"%23",
]  # fmt: skip
spellings = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map(
    lambda parts: b"/" + b"".join(parts)
)
disguises = st.tuples(
    spellings,
    st.sampled_from([b"/shop", b"shop", b"/shop/x", b"%2fshop"]),
    st.sampled_from([b"", b"/", b"/x", b";x", b"%00"]),
)


@given(st.one_of(spellings, disguises.map(b"".join)))
@settings(max_examples=examples(500))
@example(b"/shop%3Fx")
@example(b"/about//..%2fshop")
@example(b"//shop;x")
@example(b"/about/..;/shop")
@example(b"/about%2f..%2fshop")
@example(b"/%252e%252e/shop")
@example(b"/about//../shop")
def test_what_is_forwarded_beside_the_room_is_outside_it_for_every_server(raw):
    target = read_target(raw)
    if not isinstance(target, Target):
        return
    rooms = {ROOM.find("a.example", path) for path in target.readings or (target.path,)}
    if rooms == {None}:
        path = target.raw.partition(b"?")[0] if target.readings else target.path.encode()
        assert not reaches_the_room(path)
    elif len(rooms) > 1 and isinstance(target.otherwise, Target):
        sent = target.otherwise.path
        assert ROOM.find("a.example", sent) or not reaches_the_room(sent.encode())


def test_the_players_of_other_servers_find_what_a_lax_proxy_would_forward():
    disguised = (
        b"/about/..;/shop",
        b"/%2573hop",
        b"/about%252f..%252fshop",
        b"/\\shop",
        b"/shop;x/y",
        b"/shop%00.css",
        b"/x/%2e%2e/shop",
    )
    assert all(reaches_the_room(raw) for raw in disguised)
    assert not reaches_the_room(b"/shopping/../about/%41?shop")
