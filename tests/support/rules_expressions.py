"""Strategies for well-typed expressions of the rules language and for requests they may hold for;
several tests load this file.
"""

import ipaddress
from typing import Any

from hypothesis import strategies as st

from greenroom.model.visit import Arrival
from greenroom.rules import Place
from greenroom.rules.syntax import (
    Bare,
    Call,
    Compare,
    Each,
    Field,
    Items,
    Logic,
    Node,
    Not,
    Number,
    Pattern,
    Text,
    Truth,
)

PIECES = [
    "",
    "a",
    "b",
    "A",
    "shop",
    "/",
    "/api/",
    "x=1",
    "%41",
    "+",
    "*",
    "\\",
    '"',
    ".js",
    "é",
    "\x00",
    "#",
    "1",
    " ",
]
STRINGS = [
    "http.host",
    "http.request.uri.path",
    "http.request.uri.query",
    "http.user_agent",
    "http.request.method",
    "ip.src.country",
    "http.cookie",
]
ARRAYS = [
    "http.request.headers.names",
    "http.request.headers.values",
    "http.request.uri.args.values",
    "http.request.uri.args.names",
]
MAPS = ["http.request.headers", "http.request.uri.args", "http.request.cookies"]
INTEGERS = [
    "http.request.timestamp.sec",
    "http.request.timestamp.msec",
    "ip.src.asnum",
    "cf.edge.server_port",
]
KEYS = ["a", "b", "A", "accept", "x-a", "absent"]
ADDRESSES = [
    "192.0.2.0",
    "192.0.2.7",
    "192.0.2.255",
    "10.0.0.1",
    "::1",
    "2001:db8::",
    "2001:db8::ff",
]
NETWORKS = ["192.0.2.0/24", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::/0", "192.0.2.7/32"]
PATTERNS = [
    "a",
    "^/api/",
    "b$",
    "[ab]+",
    "a|b",
    "\\.js",
    "(a)(b)?",
    "[^a]",
    "\\d",
    "\\s",
    "\\w+",
    "a{1,2}",
    "(?i)SHOP",
    '"',
    ".",
    "^$",
    "(?:ab)*?",
    "é",
]
WILDCARDS = ["*", "a*", "*a", "*a*b*", "shop*", "/api/*", "\\*", "\\\\", "", "*.js", "A*", "*é"]
BYTES = [piece.encode().decode("latin-1") for piece in PIECES]
EACH = Each.EACH

texts = st.lists(st.sampled_from(BYTES), max_size=3).map("".join) | st.text(
    st.characters(max_codepoint=255), max_size=4
)
text_nodes = texts.map(Text)
small = st.integers(-3, 8) | st.sampled_from([80, 443, 1_700_000_000, -(2**63), 2**63 - 1])


def string_values(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Calls that give a string from one."""
    return st.one_of(
        st.builds(
            lambda name, arg: Call(name, (arg,)),
            st.sampled_from(["lower", "upper", "url_decode"]),
            children,
        ),
        st.builds(
            lambda arg, start, end: Call("substring", (arg, Number(start), Number(end))),
            children,
            st.integers(-3, 4),
            st.integers(-3, 6),
        ),
        st.builds(lambda one, other: Call("concat", (one, other)), children, children | text_nodes),
        st.builds(
            lambda arg, unwanted: Call("remove_bytes", (arg, unwanted)), children, text_nodes
        ),
    )


leaf_strings = st.one_of(
    st.sampled_from(STRINGS).map(Field),
    st.builds(
        lambda name, place: Field(name, (place,)), st.sampled_from(ARRAYS), st.integers(0, 3)
    ),
    st.builds(
        lambda name, key, place: Field(name, (key, place)),
        st.sampled_from(MAPS),
        st.sampled_from(KEYS),
        st.integers(0, 2),
    ),
)
strings = st.recursive(leaf_strings, string_values, max_leaves=3)
integers = st.sampled_from(INTEGERS).map(Field) | strings.map(lambda arg: Call("len", (arg,)))
lists_of_strings = st.one_of(
    st.sampled_from(ARRAYS).map(lambda name: Field(name, (EACH,))),
    st.builds(
        lambda name, key: Field(name, (key, EACH)), st.sampled_from(MAPS), st.sampled_from(KEYS)
    ),
    st.sampled_from(MAPS).map(lambda name: Field(name, (EACH, EACH))),
    st.builds(
        lambda name, place: Field(name, (EACH, place)), st.sampled_from(MAPS), st.integers(0, 1)
    ),
)
lists_of_strings = lists_of_strings | lists_of_strings.map(
    lambda arg: Call("lower", (arg,), (EACH,))
)
items_of_text = st.lists(text_nodes, max_size=3).map(lambda found: Items(tuple(found)))


def integer_items(bounds: list[tuple[int, int]]) -> Items:
    return Items(
        tuple(
            Bare(str(low) if low == high else f"{low}..{high}")
            for low, high in (sorted(pair) for pair in bounds)
        )
    )


def address_items(found: list[Any]) -> Items:
    return Items(tuple(Bare(item if isinstance(item, str) else "..".join(item)) for item in found))


ranges_of_addresses = st.lists(st.sampled_from(ADDRESSES), min_size=2, max_size=2).map(
    lambda pair: tuple(sorted(pair, key=lambda text: int(ipaddress.ip_address(text))))
)
ranges_of_addresses = ranges_of_addresses.filter(lambda pair: (":" in pair[0]) == (":" in pair[1]))


def of_strings(left: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Comparisons of one string, or of each of a list."""
    return st.one_of(
        st.builds(
            Compare,
            left,
            st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "contains"]),
            text_nodes,
        ),
        st.builds(Compare, left, st.just("in"), items_of_text),
        st.builds(Compare, left, st.just("matches"), st.sampled_from(PATTERNS).map(Pattern)),
        st.builds(
            Compare,
            left,
            st.sampled_from(["wildcard", "strict wildcard"]),
            st.sampled_from(WILDCARDS).map(lambda text: Text(text.encode().decode("latin-1"))),
        ),
    )


tests_of_lists = of_strings(lists_of_strings) | st.builds(
    lambda arg, start: Call("starts_with", (arg, start)), lists_of_strings, text_nodes
)
tests_of_lists = st.recursive(
    tests_of_lists,
    lambda children: (
        children.map(Not)
        | st.builds(
            Logic,
            st.sampled_from(["and", "or", "xor"]),
            st.lists(children, min_size=2, max_size=3).map(tuple),
        )
    ),
    max_leaves=3,
)
comparisons = st.one_of(
    of_strings(strings),
    st.builds(
        Compare,
        integers,
        st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]),
        small.map(lambda number: Bare(str(number))),
    ),
    st.builds(
        Compare,
        integers,
        st.just("in"),
        st.lists(st.tuples(small, small), max_size=4).map(integer_items),
    ),
    st.builds(
        Compare,
        st.just(Field("ip.src")),
        st.sampled_from(["eq", "ne"]),
        st.sampled_from(ADDRESSES).map(Bare),
    ),
    st.builds(
        Compare,
        st.just(Field("ip.src")),
        st.just("in"),
        st.lists(st.sampled_from(ADDRESSES + NETWORKS) | ranges_of_addresses, max_size=4).map(
            address_items
        ),
    ),
    st.builds(
        lambda name, arg, other: Call(name, (arg, other)),
        st.sampled_from(["starts_with", "ends_with"]),
        strings,
        strings | text_nodes,
    ),
    st.builds(
        lambda name, test: Call(name, (test,)), st.sampled_from(["any", "all"]), tests_of_lists
    ),
    st.sampled_from(
        ["ssl", "http.request.headers.truncated", "ip.src.is_in_european_union", "cf.client.bot"]
    ).map(Field),
)


def joined(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Conditions made of conditions."""
    return children.map(Not) | st.builds(
        Logic,
        st.sampled_from(["and", "or", "xor"]),
        st.lists(children, min_size=2, max_size=4).map(tuple),
    )


conditions = st.recursive(comparisons, joined, max_leaves=6)
"""Conditions that greenroom and the published parser both know."""

all_conditions = st.recursive(comparisons | st.booleans().map(Truth), joined, max_leaves=6)
"""Also those with `true` and `false`."""

header_values = st.lists(st.sampled_from(BYTES), max_size=2).map(
    lambda parts: "".join(parts).replace("\x00", "").encode("latin-1")
)
plain = st.sampled_from(["a", "b", "A", "%41", "x", "1", "shop", ".js", "+", "%e9", ""])
paths = st.lists(plain, max_size=4).map(lambda parts: "/" + "/".join(parts).replace("+", "api"))
queries = st.lists(st.tuples(st.sampled_from(["a", "b", "A", "x"]), plain), max_size=4).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)
header_lines = st.tuples(st.sampled_from([b"accept", b"x-a", b"a", b"user-agent"]), header_values)
cookie_lines = st.lists(
    st.tuples(st.sampled_from(["a", "b", "%41"]), st.sampled_from(["1", "x", ""])), max_size=3
).map(lambda pairs: (b"cookie", "; ".join(f"{name}={value}" for name, value in pairs).encode()))
arrivals = st.builds(
    lambda method, scheme, host, path, query, headers, cookie, client, port: Arrival(
        method, scheme, host, path, query, (*headers, *cookie), client, server=("192.0.2.1", port)
    ),
    st.sampled_from(["GET", "POST"]),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["shop", "a", "b.shop", "shop.example.com"]),
    paths,
    queries,
    st.lists(header_lines, max_size=4),
    st.lists(cookie_lines, max_size=1),
    st.sampled_from([*ADDRESSES, "::ffff:192.0.2.7", "unix"]),
    st.sampled_from([80, 443, 0]),
)
places = st.builds(
    Place,
    country=st.sampled_from(["", "DE", "US"]),
    in_european_union=st.booleans(),
    as_number=st.sampled_from([0, 1, 8, 64_512]),
)
