"""What is wrong with an expression, a list or a rule: all of it at once, in words, and never as an
exception.
"""

import pytest
from rules_visit import holds, reasons

from greenroom.errors import InvalidConfig
from greenroom.model.rule import EXPRESSION_MAX, Rule, RuleList
from greenroom.rules import compile_bypass, compile_lists, rule_problems


def test_every_fault_is_drawn_in_the_published_style() -> None:
    problems = rule_problems(
        'ssl\nand http.hots == "a"\n  or ip.src == "x"', "rooms[0].rules[1].expression"
    )
    assert [problem.pointer for problem in problems] == ["rooms[0].rules[1].expression"] * 2
    assert problems[0].reason == (
        'Filter parsing error (2:5):\nand http.hots == "a"\n    ^^^^^^^^^ unknown identifier, did you mean http.host?'
    )
    assert (
        problems[1].reason
        == 'Filter parsing error (3:16):\n  or ip.src == "x"\n               ^^^ expected an IP address'
    )


WRONG = [
    ("", "the expression is empty"),
    ("ssl and", "the expression ends too early, expected a field or a function"),
    ("ssl ssl", "unrecognised input, expected a comparison operator"),
    ("(ssl", 'the expression ends too early, expected ")"'),
    ("ssl AND ssl", "unrecognised input, expected a comparison operator"),
    ('http.host == "a', "could not find an ending quote"),
    (r'http.host == "\n"', 'expected ", \\, xHH or three octal digits after \\'),
    ("http.host", "expected a comparison operator or a Boolean, but this is of type String"),
    ("http.host == 5", "expected a quoted string"),
    ("ssl == true", "unrecognised input, expected a literal"),
    ("ssl == 1", "cannot perform the operation eq on type Boolean; write it alone or behind `not`"),
    ('ip.src contains "1"', "cannot perform the operation contains on type IP address"),
    ("ip.src == 1.2.3.0/24", "expected an IP address"),
    ("ip.src in {1.2.3.4/24}", "host part of address was not zero"),
    ("ip.src in {1.2.3.0/33}", "a prefix length must be between 0 and 32"),
    ("ip.src in {1.2.3.9..1.2.3.4}", "incompatible range bounds"),
    ("ip.src in {1.2.3.4..::2}", "incompatible range bounds"),
    ("ip.src.asnum == 089", "expected a 64-bit integer"),
    ("ip.src.asnum == 9223372036854775808", "expected a 64-bit integer"),
    ("ip.src.asnum in {5..1}", "incompatible range bounds"),
    ('http.host wildcard "a**b"', "wildcard contains a double star"),
    (r'http.host wildcard r"a\b"', r"invalid wildcard: only \* and \\ are escapes"),
    (
        'http.host matches "(?=a)"',
        "look-around, including look-ahead and look-behind, is not supported",
    ),
    (r'http.host matches "(a)\1"', "backreferences are not supported"),
    (
        'http.request.headers.names[*] == "a"',
        "expected value of type Boolean, but got Array<Boolean>; use any() or all()",
    ),
    ('any(http.request.headers.names[*] == "a" or ssl)', 'unrecognised input, expected ")"'),
    (
        'any((http.request.headers.names[*] == "a" or ssl))',
        "expected value of type Array<Boolean>, but got Boolean",
    ),
    ('http.request.headers.names[-1] == "a"', "an index must be between 0 and 4294967295"),
    ('http.request.headers[0] == "a"', "cannot access index [0] for type Map<Array<String>>"),
    ('http.host["a"] == "a"', 'cannot access index ["a"] for type String'),
    ('http.host[*] == "a"', "cannot access index [*] for type String"),
    (
        "any(ssl)",
        "invalid type of argument 1 (test) of any: expected value of type Array<Boolean>, but got Boolean",
    ),
    (
        'lower("A") == "a"',
        "invalid kind of argument: argument 1 (input) of lower must be a field or a function call, not a literal",
    ),
    (
        'substring(http.host, ip.src.asnum) == ""',
        "invalid kind of argument: argument 2 (start) of substring must be a literal",
    ),
    ('lower() == "a"', "invalid number of arguments: lower takes 1, not 0"),
    ('substring(http.host) == "a"', "invalid number of arguments: substring takes 2 to 3, not 1"),
    ('concat(http.host) == "a"', "invalid number of arguments: concat takes 2 or more, not 1"),
    (
        'concat(http.host, http.request.headers.names)[0] == "a"',
        "all arguments of concat must have the same type",
    ),
    (
        "starts_with(http.host, http.request.headers.names[*])",
        "invalid use of [*]: only the first argument may have it",
    ),
    ('url_decode(http.host, "x") == ""', 'the options of url_decode are "r" and "u"'),
    ('split(http.host, "", 3)[0] == ""', "the separator must not be empty"),
    ('split(http.host, ".", 129)[0] == ""', "the limit must be between 1 and 128"),
    (
        'is_timed_hmac_valid_v0("", http.request.uri, 9, http.request.timestamp.sec)',
        "the key must not be empty",
    ),
    (
        'is_timed_hmac_valid_v0("k", http.request.uri, -9, http.request.timestamp.sec)',
        "lifetime and separator length must not be negative",
    ),
    (
        'is_timed_hmac_valid_v0("k", http.request.uri, 9, http.request.timestamp.sec, 0, "x")',
        'the only flag is "s"',
    ),
    ('lookup_json_string(http.host, -1) == ""', "an index into JSON must not be negative"),
    ("http.host in $nobody", "there is no list named nobody"),
    ("nonsense.field", "unknown identifier"),
    ('lowr(http.host) == "a"', "unknown identifier, did you mean lower?"),
    (
        'http.request.body.raw contains "x"',
        "http.request.body.raw is not available: the body of a request is not read before admission",
    ),
    (
        "cf.bot_management.score > 30",
        "cf.bot_management.score is not available: bypass rules may not read bot scores",
    ),
    (
        'cf.worker.upstream_zone == ""',
        "cf.worker.upstream_zone is not available: has no counterpart outside Cloudflare",
    ),
    (
        'uuidv4(cf.random_seed) == ""',
        "uuidv4 returns random values, which a condition must not depend on",
    ),
]


@pytest.mark.parametrize(
    ("source", "reason"), WRONG, ids=[source or "empty" for source, _ in WRONG]
)
def test_what_is_wrong_is_said_in_words(source: str, reason: str) -> None:
    assert reasons(source) == [reason]


def test_all_faults_of_an_expression_are_told_at_once() -> None:
    source = 'http.host == 1 and ssl == 5 or ip.src == "x" or nope(1) xor http.host in {1 "a" 2} or any(lower(ssl)[*] == "x")'
    assert len(reasons(source)) == 7


def test_an_expression_has_a_longest_length_and_a_deepest_nesting() -> None:
    fits = "ssl or " * 584 + "ssl      "
    assert len(fits) == EXPRESSION_MAX + 1
    assert reasons(fits) == [f"the expression is longer than {EXPRESSION_MAX} characters"]
    assert holds(fits[:-1])
    assert holds("!" * 126 + "ssl")
    assert reasons("!" * 129 + "ssl") == ["maximum nesting depth exceeded (limit: 128)"]
    assert reasons("(" * 2000 + "ssl" + ")" * 2000) == [
        "maximum nesting depth exceeded (limit: 128)"
    ]
    assert reasons("lower(" * 200 + "http.host" + ")" * 200 + ' == "a"') == [
        "maximum nesting depth exceeded (limit: 128)"
    ]


def test_an_expression_has_at_most_sixty_four_patterns() -> None:
    assert reasons(" or ".join(['http.host ~ "a"'] * 64)) == []
    assert reasons(" or ".join(['http.host ~ "a"'] * 65)) == ["more than 64 regular expressions"]


def test_every_rule_is_checked_even_a_disabled_one() -> None:
    with pytest.raises(InvalidConfig) as caught:
        compile_bypass(
            [
                Rule(expression="ssl"),
                Rule(expression="nope"),
                Rule(expression="ssl and", enabled=False),
            ]
        )
    assert [problem.pointer for problem in caught.value.problems] == [
        "rules[1].expression",
        "rules[2].expression",
    ]


def test_every_problem_of_every_list_is_told() -> None:
    lists = [
        RuleList(
            name="a",
            kind="ip",
            items=("1.2.3.4/24", "::/3", "0.0.0.0/1", "1.2.3.4..1.2.3.5", "x", "10.0.0.0/8"),
        ),
        RuleList(name="a b", kind="nobody"),
        RuleList(name="h", kind="hostname", items=("https://x", "*", "A.example", "ok.example")),
        RuleList(name="h", kind="asn", items=("4294967296", "-1", "x", "²", "5")),
    ]
    with pytest.raises(InvalidConfig) as caught:
        compile_lists(lists)
    assert [problem.pointer for problem in caught.value.problems] == [
        *[f"lists[0].items[{index}]" for index in range(5)],
        "lists[1].name",
        "lists[1].kind",
        *[f"lists[2].items[{index}]" for index in range(3)],
        *[f"lists[3].items[{index}]" for index in range(4)],
    ]


def test_a_rule_refuses_to_be_invalid() -> None:
    with pytest.raises(InvalidConfig) as caught:
        Rule(action="block", expression="", description="x" * 501, enabled="yes")  # type: ignore[arg-type]
    assert [problem.pointer for problem in caught.value.problems] == [
        "action",
        "expression",
        "description",
        "enabled",
    ]
    assert Rule(expression="ssl") == Rule(
        id="",
        version="1",
        action="bypass_waiting_room",
        expression="ssl",
        description="",
        enabled=True,
    )
