"""The published parser (wirefilter) accepts and refuses the same expressions, but for differences
that are written down here.

The oracle parses and checks types only; what an expression means is tested by the laws. It is a
build of the public ancestor of the language, a little behind the published documents: where the two
differ, the documents count.
"""

import re

import pytest
import rules_expressions as language
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from octorules_wirefilter import get_schema_info, parse_expression

from greenroom.rules import (
    FIELDS,
    FUNCTIONS,
    ListMembership,
    rule_problems,
)
from greenroom.rules.fields import ALIASES, absent
from greenroom.rules.functions import ABSENT_FUNCTIONS
from greenroom.rules.grammar import parse
from greenroom.rules.syntax import (
    INTEGER,
    IP,
    STRING,
    Logic,
    Node,
    ValueKind,
    show,
)

SCHEMA = get_schema_info()
LISTS = {
    "hosts": ListMembership(STRING, lambda _: True),
    "offices": ListMembership(IP, lambda _: True),
    "systems": ListMembership(INTEGER, lambda _: True),
}


def oracle_refuses(source: str) -> str:
    return parse_expression(source).get("error", "")


def we_refuse(source: str) -> str:
    return "\n".join(problem.reason for problem in rule_problems(source, "rule", LISTS))


# What the two say differently on purpose: (why, an expression, whether we accept it). The oracle
# says the opposite of each.
DIFFERENCES = [
    ("true and false are published as whole expressions", "true", True),
    ("len of an array is published", 'len(http.request.uri.args["order"]) >= 0', True),
    ("the options of url_decode are published", 'url_decode(http.host, "r") == "a"', True),
    ("the end of substring is published as optional", 'substring(http.host, 1) == "a"', True),
    (
        "several keys of lookup_json_string are published",
        'lookup_json_string(http.host, "a", 0, "b") == "x"',
        True,
    ),
    (
        "the key of the signed link is published as a literal",
        'is_timed_hmac_valid_v0("k", http.request.uri, 9, http.request.timestamp.sec)',
        True,
    ),
    ("to_string is published for every simple type", 'to_string(ip.src) == "::1"', True),
    ("blanks are free everywhere", 'http.request.headers ["a"] [0] == "b"', True),
    ("blanks are free everywhere", 'http.host strict  wildcard "a"', True),
    ("parentheses around an argument do no harm", 'lower((http.host)) == "a"', True),
    (
        "one name twice in a pattern does no harm: groups are not read",
        'http.host matches "(?P<a>x)(?P<a>y)"',
        True,
    ),
    ("an empty expression is no condition", " ", False),
    ("addresses have no order in the documents", "ip.src < 192.0.2.1", False),
    ("a network is written in full", "ip.src in {10/8}", False),
    ("bytes in hexadecimal are not published and look like addresses", "http.host == 61:62", False),
    ("a whole number is no address", "ip.src in {017}", False),
    ("not a published function", 'contains(http.host, "a")', False),
    ("a field is compared with a literal", "http.host == http.referer", False),
    ("bit masks are not published", "ip.src.asnum & 1", False),
    ("a prefix longer than the address is a mistake", "cidr(ip.src, 33, 64) == 1.2.3.0", False),
    ("the linear engine has no verbose mode", 'http.host matches "(?x)a"', False),
    ("the linear engine has no class set operations", 'http.host matches "[a&&b]"', False),
    ("the linear engine has no nested classes", 'http.host matches "[a[b]]"', False),
    ("the linear engine counts to 1,000", 'http.host matches "a{1001}"', False),
    ("a repetition of a repetition needs a group", 'http.host matches "a**"', False),
    ("only plain word boundaries", r'http.host matches "\<a"', False),
    ("strings are bytes", 'http.host matches "(?u)a"', False),
    ("a list must exist and fit", "http.host in $nobody", False),
]


@pytest.mark.parametrize(
    ("why", "source", "accepted"), DIFFERENCES, ids=[source for _, source, _ in DIFFERENCES]
)
def test_a_known_difference_is_still_one(why: str, source: str, accepted: bool) -> None:
    assert bool(we_refuse(source)) != accepted
    assert bool(oracle_refuses(source)) == accepted, f"no difference any more: {why}"


@settings(deadline=None, max_examples=300)
@given(language.conditions)
def test_what_is_well_typed_is_accepted_by_both(node: Node) -> None:
    source = show(node)
    assert we_refuse(source) == ""
    assert oracle_refuses(source) == ""


@settings(deadline=None, max_examples=150)
@given(language.conditions)
def test_both_see_the_same_structure(node: Node) -> None:
    found = parse_expression(show(node))
    parts = node.parts if isinstance(node, Logic) else (node,)
    assert found.get("top_level_op") == (node.op if isinstance(node, Logic) else None)
    assert len(found["top_level_items"]) == len(parts) or isinstance(node, Logic)


TOKEN = re.compile(
    r'r(#*)".*?"\1|"(?:\\.|[^"\\])*"|strict wildcard|[a-zA-Z_][\w.]*|[^\s(){}\[\],"]+|\s+|.',
    re.DOTALL,
)
SPARE = (
    "ssl http.host ip.src http.request.headers http.request.headers.names http.request.timestamp.sec any all lower len starts_with concat "
    "nothing http.nothing and or xor not ! && || ^^ eq != < >= contains matches ~ wildcard in ( ) { } [ ] [*] [0] , . .. "
    '"a" "" "\\x41" "\\" "[" "a**b" r"a" r#"a"# 1 -1 017 089 0x1f 1..5 5..1 1.5 192.0.2.1 192.0.2.0/24 192.0.2.1/24 ::1 1.2.3.4..1.2.3.9 '
    "$offices $hosts $systems $Nobody true AND = === # // /* é '"
).split()


def tokens(source: str) -> list[str]:
    return [found[0] for found in TOKEN.finditer(source)]


@st.composite
def slightly_broken(draw: st.DrawFn) -> str:
    """A well-typed expression with one or two tokens left out, doubled, exchanged or put in."""
    parts = tokens(show(draw(language.conditions)))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(parts) - 1))
        change = draw(st.sampled_from(["leave out", "double", "exchange", "put in", "swap"]))
        if change == "leave out" and len(parts) > 1:
            del parts[at]
        elif change == "double":
            parts.insert(at, parts[at])
        elif change == "exchange":
            parts[at] = draw(st.sampled_from(SPARE))
        elif change == "put in":
            parts[at:at] = [" ", draw(st.sampled_from(SPARE)), " "]
        elif at + 1 < len(parts):
            parts[at], parts[at + 1] = parts[at + 1], parts[at]
    return "".join(parts)


# Forms of DIFFERENCES that a broken expression can take by chance: (in the expression, in what we
# say, in what the oracle says).
BY_CHANCE = [
    (r"\b(?:true|false)\b", "", "unknown identifier"),
    (r"len", "", "expected value of type Bytes, but got Array"),
    (r"[\w\]\)] +\[", "", "."),
    (r"ip\.src\s*(?:<|>|lt|le|gt|ge)", "on type IP address", ""),
    (r"", "expected a quoted string", ""),
    (r"(?:eq|ne|lt|le|gt|ge|[=<>])\s*[a-z]+[.(\w]", "unrecognised input, expected a literal", ""),
    (r"", "the list \\w+ holds values", ""),
    (r"", "there is no list named", ""),
    (r"", "a repetition of a repetition", ""),
    (r"(?:strict\s\s+wildcard)", "", "expected ComparisonOp"),
    (r"[(,]\s*\(", "", "expected ComparisonOp"),
    (r"\{[^}]*\b[0-9]+\b", "expected an IP address", ""),
    (r"\b(?:contains|wildcard)\s*\(", "unknown identifier", ""),
    (r"substring", "", "invalid number of arguments"),
]


def written_down(source: str, ours: str, theirs: str) -> bool:
    if ours and theirs:
        return False
    return any(
        re.search(inside, source)
        and (bool(ours) == bool(we_say) and re.search(we_say, ours))
        and (bool(theirs) == bool(they_say) and re.search(they_say, theirs))
        for inside, we_say, they_say in BY_CHANCE
    )


@settings(deadline=None, max_examples=600)
@given(slightly_broken())
def test_what_is_slightly_broken_is_refused_by_both_or_by_neither(source: str) -> None:
    assume(source.strip())
    ours, theirs = we_refuse(source), oracle_refuses(source)
    assert bool(ours) == bool(theirs) or written_down(source, ours, theirs), (
        f"{source}\nours: {ours}\ntheirs: {theirs}"
    )


KINDS = {"STRING": "String", "INT": "Integer", "BOOL": "Boolean", "IP": "IP address"}


def named(kind: ValueKind) -> str:
    if kind.of is None:
        return next(name for name, ours in KINDS.items() if ours == kind.name)
    return f"{kind.name.upper()}_{named(kind.of)}"


def test_every_published_field_is_there_or_said_to_be_absent() -> None:
    published = {field["name"] for field in SCHEMA["fields"]} | set(ALIASES)
    assert {name for name in published if name not in FIELDS and not absent(name)} == set()
    assert {
        name for name in FIELDS if name in published and absent(name) and not name.startswith("cf.")
    } == set()


def test_every_field_has_the_published_type() -> None:
    published = {field["name"]: field["type"] for field in SCHEMA["fields"]}
    assert {name: named(spec.kind) for name, spec in FIELDS.items() if name in published} == {
        name: kind for name, kind in published.items() if name in FIELDS
    }
    for name in FIELDS.keys() - published.keys():
        use = {"String": f"lower({name}) in {{}}", "Boolean": name}.get(
            FIELDS[name].kind.name, f"{name} in {{}}"
        )
        assert oracle_refuses(use) == "", name


def test_every_function_is_known_to_the_oracle() -> None:
    assert set(FUNCTIONS) | set(ABSENT_FUNCTIONS) <= set(SCHEMA["functions"])


def test_nesting_is_limited_at_the_same_depth() -> None:
    for depth, fine in ((127, True), (130, False)):
        source = "(" * depth + "ssl" + ")" * depth
        assert bool(we_refuse(source)) != fine
        assert bool(oracle_refuses(source)) != fine


def test_the_oracle_refuses_and_accepts_at_all() -> None:
    assert oracle_refuses("ssl and")
    assert not oracle_refuses("ssl and not ssl")
    assert parse("ssl")
