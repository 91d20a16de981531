"""Laws of the rules language: precedence, De Morgan, printing and parsing, and closures that say
what a naive interpreter says.
"""

import ipaddress
import re
from typing import Any
from urllib.parse import unquote_to_bytes

import rules_expressions as language
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.rules import (
    Place,
    RequestFacts,
    compile_bypass,
    compile_rule,
    rule_problems,
)
from greenroom.rules.grammar import parse
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
    show,
)

NOW_MS = 1_700_000_000_007


class Known:
    """Lookups that know one place for everybody and no crawler."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def place(self, client: str) -> Place:
        return self._place

    def crawler(self, client: str, user_agent: str) -> str:
        return ""


def raw(text: str) -> bytes:
    return text.encode("latin-1")


class Naive:
    """Evaluates the parts of an expression one by one, in bytes and Python objects, sharing nothing
    with the compiler but the parts.

    None is the missing value, NO_LIST a missing list of truths. It is slow and short, and that is
    its use.
    """

    NO_LIST = object()

    def __init__(self, arrival: Arrival, place: Place) -> None:
        self.arrival = arrival
        pairs = (
            [part.partition("=")[::2] for part in arrival.query.split("&")] if arrival.query else []
        )
        cookie = next(
            (value.decode("latin-1") for name, value in arrival.headers if name == b"cookie"), ""
        )
        cookies = [
            (unquote_to_bytes(name).decode("latin-1"), value)
            for name, _, value in (item.partition("=") for item in cookie.split("; "))
        ]
        agents = [
            value.decode("latin-1") for name, value in arrival.headers if name == b"user-agent"
        ]
        try:
            client: Any = ipaddress.ip_address(arrival.client)
        except ValueError:
            client = None
        if getattr(client, "ipv4_mapped", None):
            client = client.ipv4_mapped
        self.fields: dict[str, Any] = {
            "http.host": arrival.host,
            "http.request.uri.path": arrival.path,
            "http.request.uri.query": arrival.query,
            "http.request.method": arrival.method,
            "http.user_agent": ", ".join(agents),
            "http.cookie": cookie,
            "ip.src": client,
            "ip.src.country": place.country,
            "ip.src.asnum": place.as_number,
            "ip.src.is_in_european_union": place.in_european_union,
            "http.request.headers.names": [name.decode() for name, _ in arrival.headers],
            "http.request.headers.values": [
                value.decode("latin-1") for _, value in arrival.headers
            ],
            "http.request.headers": self.lists(
                [(name.decode(), value.decode("latin-1")) for name, value in arrival.headers]
            ),
            "http.request.headers.truncated": False,
            "http.request.uri.args.names": [name for name, _ in pairs],
            "http.request.uri.args.values": [value for _, value in pairs],
            "http.request.uri.args": self.lists(pairs),
            "http.request.cookies": self.lists(cookies if cookie else []),
            "http.request.timestamp.sec": NOW_MS // 1000,
            "http.request.timestamp.msec": NOW_MS % 1000,
            "cf.edge.server_port": arrival.server[1] or None,
            "cf.client.bot": False,
            "ssl": arrival.scheme == "https",
        }

    @staticmethod
    def lists(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
        return {name: [value for other, value in pairs if other == name] for name, _ in pairs}

    def holds(self, node: Node) -> Any:
        """True, False, a list of them, or None."""
        if isinstance(node, Truth):
            return node.value
        if isinstance(node, Not):
            return self.lifted(lambda truth: not truth, [self.holds(node.part)])
        if isinstance(node, Logic):
            rules = {
                "and": lambda *row: all(row),
                "or": lambda *row: any(row),
                "xor": lambda *row: sum(map(bool, row)) % 2 == 1,
            }
            return self.lifted(rules[node.op], [self.holds(part) for part in node.parts])
        if isinstance(node, Compare):
            left, each = self.value(node.left)
            if each:
                return (
                    self.NO_LIST
                    if left is None
                    else [self.compared(value, node.op, node.right) for value in left]
                )
            return self.compared(left, node.op, node.right)
        return self.value(node)[0]

    def lifted(self, rule: Any, parts: list[Any]) -> Any:
        if self.NO_LIST in parts:
            return self.NO_LIST
        if isinstance(parts[0], list):
            return [rule(*row) for row in zip(*parts, strict=False)]
        return rule(*parts)

    def compared(self, left: Any, op: str, right: Any) -> bool:
        if left is None:
            return False
        if op == "in":
            return any(self.within(left, item) for item in right.items)
        if op == "matches":
            return re.search(right.source.encode(), raw(left)) is not None
        if "wildcard" in op:
            flags = re.DOTALL if op == "strict wildcard" else re.DOTALL | re.IGNORECASE
            return re.fullmatch(self.wildcard(raw(right.value)), raw(left), flags) is not None
        value = self.literal(left, right)
        if op == "contains":
            return raw(value) in raw(left)
        if isinstance(left, str):
            left, value = raw(left), raw(value)
        return (
            {"eq": left == value, "ne": left != value}[op]
            if op in ("eq", "ne")
            else bool(getattr(left, f"__{op}__")(value))
        )

    @staticmethod
    def wildcard(pattern: bytes) -> bytes:
        out, at = b"", 0
        while at < len(pattern):
            char = pattern[at : at + 1]
            if char == b"\\":
                at += 1
                out += re.escape(pattern[at : at + 1])
            else:
                out += b".*" if char == b"*" else re.escape(char)
            at += 1
        return out

    @staticmethod
    def literal(left: Any, right: Any) -> Any:
        if isinstance(right, Text):
            return right.value
        assert isinstance(right, Bare)
        return int(right.text) if isinstance(left, int) else ipaddress.ip_address(right.text)

    @staticmethod
    def within(left: Any, item: Any) -> bool:
        if isinstance(item, Text):
            return left == item.value
        low, _, high = item.text.partition("..")
        if isinstance(left, int):
            return int(low) <= left <= int(high or low)
        if "/" in low:
            return left in ipaddress.ip_network(low)
        first, last = ipaddress.ip_address(low), ipaddress.ip_address(high or low)
        return left.version == first.version and first <= left <= last

    def value(self, node: Node) -> tuple[Any, bool]:
        """A value, and whether it is a list that `[*]` made."""
        if isinstance(node, Field):
            return self.at(self.fields[node.name], False, node.indexes)
        if isinstance(node, Text | Number):
            return node.value, False
        if not isinstance(node, Call):
            return self.holds(node), False
        (first, each), *rest = [self.value(arg) for arg in node.args]
        others = [value for value, _ in rest]
        if each:
            found = (
                self.NO_LIST
                if first is None
                else [self.run(node.name, value, *others) for value in first]
            )
        else:
            found = self.run(node.name, first, *others)
        return self.at(found, False, node.indexes)

    def at(self, value: Any, each: bool, indexes: Any) -> tuple[Any, bool]:
        for index in indexes:
            if value is None or value is self.NO_LIST:
                value = None
                each = each or index is Each.EACH
            elif index is Each.EACH:
                outer = list(value.values()) if isinstance(value, dict) else value
                value, each = ([one for inner in outer for one in inner] if each else outer), True
            elif each:
                value = [one[index] if index < len(one) else None for one in value]
            elif isinstance(index, str):
                value = value.get(index)
            else:
                value = value[index] if index < len(value) else None
        return value, each

    def run(self, name: str, *args: Any) -> Any:
        if any(arg is None or arg is self.NO_LIST for arg in args):
            return None
        first, rest = args[0], args[1:]
        if name in ("any", "all"):
            return {"any": any, "all": all}[name](first)
        text = raw(first)
        return {
            "lower": lambda: text.lower().decode("latin-1"),
            "upper": lambda: text.upper().decode("latin-1"),
            "url_decode": lambda: unquote_to_bytes(text.replace(b"+", b" ")).decode("latin-1"),
            "substring": lambda: text[rest[0] : rest[1]].decode("latin-1"),
            "concat": lambda: first + rest[0],
            "remove_bytes": lambda: bytes(code for code in text if code not in raw(rest[0])).decode(
                "latin-1"
            ),
            "len": lambda: len(text),
            "starts_with": lambda: text.startswith(raw(rest[0])),
            "ends_with": lambda: text.endswith(raw(rest[0])),
        }[name]()


@settings(deadline=None, max_examples=examples(150))
@given(language.all_conditions)
def test_parsing_what_was_printed_gives_the_same_parts(node: Node) -> None:
    assert parse(show(node)) == node


@settings(deadline=None, max_examples=examples(200))
@given(
    language.all_conditions,
    st.lists(st.tuples(language.arrivals, language.places), min_size=3, max_size=6),
)
def test_closures_say_what_a_naive_interpreter_says(
    node: Node, requests: list[tuple[Arrival, Place]]
) -> None:
    holds = compile_rule(show(node))
    for arrival, place in requests:
        assert bool(holds(RequestFacts(arrival, NOW_MS, Known(place)))) == bool(
            Naive(arrival, place).holds(node)
        ), show(node)


TRUTHS = st.lists(st.booleans(), min_size=4, max_size=4)
FLAGS = ["ssl", 'http.host == "a"', "ip.src.is_in_european_union", "cf.edge.server_port == 443"]


def facts(truths: list[bool]) -> RequestFacts:
    encrypted, host, union, port = truths
    arrival = Arrival(
        "GET",
        "https" if encrypted else "http",
        "a" if host else "b",
        "/",
        "",
        (),
        "::1",
        server=("::1", 443 if port else 80),
    )
    return RequestFacts(arrival, NOW_MS, Known(Place(in_european_union=union)))


SPELLINGS = {"not ": "!", " and ": "&&", " xor ": "^^", " or ": "||"}
WORDS = {"not ": "not ", " and ": " and ", " xor ": " != ", " or ": " or "}
chains = st.lists(
    st.tuples(st.sampled_from([" and ", " xor ", " or "]), st.integers(0, 2), st.integers(0, 3)),
    min_size=1,
    max_size=9,
)


@settings(deadline=None)
@given(TRUTHS, chains, st.booleans())
def test_not_binds_tighter_than_and_then_xor_then_or(
    truths: list[bool], chain: list[tuple[str, int, int]], symbols: bool
) -> None:
    """Judged by splitting at the loosest operator first, which is what precedence means."""
    spell = SPELLINGS.__getitem__ if symbols else str
    source = "".join(
        (spell(op) if index else "") + spell("not ") * nots + FLAGS[flag]
        for index, (op, nots, flag) in enumerate(chain)
    )
    ors: list[list[list[bool]]] = [[[]]]
    for index, (op, nots, flag) in enumerate(chain):
        if index and op == " or ":
            ors.append([[]])
        elif index and op == " xor ":
            ors[-1].append([])
        ors[-1][-1].append(truths[flag] ^ (nots % 2 == 1))
    expected = any(sum(all(ands) for ands in xors) % 2 == 1 for xors in ors)
    assert bool(compile_rule(source)(facts(truths))) == expected


@settings(deadline=None, max_examples=examples(60))
@given(
    language.conditions,
    language.conditions,
    st.lists(st.tuples(language.arrivals, language.places), min_size=2, max_size=4),
)
def test_de_morgan_holds_even_where_values_are_missing(
    one: Node, other: Node, requests: list[tuple[Arrival, Place]]
) -> None:
    laws = [
        (Not(Logic("and", (one, other))), Logic("or", (Not(one), Not(other)))),
        (Not(Logic("or", (one, other))), Logic("and", (Not(one), Not(other)))),
        (
            Logic("xor", (one, other)),
            Logic("or", (Logic("and", (one, Not(other))), Logic("and", (Not(one), other)))),
        ),
    ]
    for left, right in laws:
        first, second = compile_rule(show(left)), compile_rule(show(right))
        for arrival, place in requests:
            known = RequestFacts(arrival, NOW_MS, Known(place))
            assert bool(first(known)) == bool(second(known))


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(language.conditions, min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    language.arrivals,
)
def test_the_enabled_rules_of_a_room_are_joined_by_or(
    nodes: list[Node], enabled: list[bool], arrival: Arrival
) -> None:
    rules = [
        Rule(id=str(index), expression=show(node), enabled=on)
        for index, (node, on) in enumerate(zip(nodes, enabled, strict=False))
    ]
    place = Place(country="DE")
    holding = [
        rule
        for rule, node in zip(rules, nodes, strict=True)
        if rule.enabled and Naive(arrival, place).holds(node)
    ]
    assert compile_bypass(rules)(arrival, NOW_MS, Known(place)) == (holding[0] if holding else None)


@settings(deadline=None, max_examples=examples(100))
@given(
    st.text(max_size=60) | language.conditions.map(show),
    st.integers(0, 80),
    st.sampled_from(['"', "(", ")", "{", "[*]", "é", "\x00", "not ", "\ud800"]),
)
def test_no_text_gets_anything_but_problems_or_a_rule(source: str, at: int, piece: str) -> None:
    broken = source[:at] + piece + source[at:]
    for problem in rule_problems(broken, "rule"):
        assert problem.pointer == "rule"
        place, line, caret, *_ = problem.reason.split("\n")
        assert re.fullmatch(r"Filter parsing error \([1-9][0-9]*:[1-9][0-9]*\):", place)
        assert caret.lstrip(" ").startswith("^")
        assert (
            int(place.rpartition(":")[0].rpartition(":")[2].rstrip(")"))
            == len(caret) - len(caret.lstrip(" ")) + 1
            <= len(line) + 1
        )


def test_the_naive_interpreter_is_not_naive_about_missing_values() -> None:
    naive = Naive(Arrival("GET", "http", "a", "/", "", (), "unix"), Place())
    assert naive.holds(parse('not http.request.headers["x"][0] == "y"'))
    assert not naive.holds(parse('http.request.headers["x"][0] != "y"'))
    assert not naive.holds(parse('all(http.request.headers["x"][*] == "y")'))
    assert Items(()) == parse("ip.src in {}").right  # type: ignore[attr-defined]
    assert Pattern("a") == parse('http.host ~ "a"').right  # type: ignore[attr-defined]
