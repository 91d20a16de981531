"""Patterns mean what the published dialect means: Python's own engine and the published parser are
the judges, and time stays linear.
"""

import contextlib
import re
import time

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from octorules_wirefilter import parse_expression

from greenroom.rules.patterns import (
    PatternRefused,
    lower,
    search,
    translated,
    upper,
    wildcard,
)
from greenroom.rules.syntax import (
    Compare,
    Field,
    Pattern,
    show,
)

ATOMS = [
    "a",
    "b",
    "A",
    ".",
    r"\.",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"\x41",
    r"\n",
    r"\t",
    r"\-",
    r"\/",
    "[ab]",
    "[^ab]",
    "[a-z]",
    r"[\d.]",
]
ATOMS += [
    r"[\w-]",
    r"[^\s]",
    "[]a]",
    "[^]a]",
    r"[\x00-\x1f]",
    r"[a\]]",
    "x",
    "/",
    " ",
    "#",
    "-",
    r"\\",
    ",",
]
ANCHORS = ["^", "$", r"\b", r"\B", r"\A"]
atoms = st.sampled_from(ATOMS)


def grown(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.sampled_from(["({})", "(?:{})", "(?i:{})", "(?s:{})"])
    repeat = st.sampled_from(
        [
            "{}*",
            "{}+",
            "{}?",
            "{}*?",
            "{}+?",
            "{}??",
            "{}{{2}}",
            "{}{{1,3}}",
            "{}{{1,}}",
            "{}{{0,2}}?",
        ]
    )
    return st.one_of(
        st.lists(children | st.sampled_from(ANCHORS), min_size=1, max_size=4)
        .map("".join)
        .filter(lambda text: not re.search(r"[*+?}]\Z", text)),
        st.lists(children, min_size=2, max_size=3).map("|".join).map(lambda text: f"(?:{text})"),
        st.builds(lambda form, inner: form.format(inner), group, children),
        st.builds(lambda form, inner: form.format(f"(?:{inner})"), repeat, children),
    )


patterns = st.recursive(atoms, grown, max_leaves=8)
texts = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "A",
            "B",
            "x",
            "1",
            ".",
            " ",
            "\n",
            "\x0b",
            "\x1c",
            "-",
            "/",
            "]",
            "\\",
            "\xe9",
            "\xff",
            "\x00",
        ]
    ),
    max_size=8,
).map("".join)


@settings(deadline=None, max_examples=examples(400))
@given(patterns, st.lists(texts, min_size=3, max_size=8))
def test_a_pattern_finds_what_pythons_own_engine_finds(pattern: str, candidates: list[str]) -> None:
    """`$` of Python also stands before a last line feed, the published one does not; Python says
    that as \\Z.
    """
    judge = re.compile(
        re.sub(
            r"(\\.|\[(?:\\.|\]|\^\])?(?:\\.|[^\]\\])*\])|\$",
            lambda found: found[1] or r"\Z",
            pattern,
        ).encode("latin-1")
    )
    found = search(pattern)
    if r"\B" in pattern:  # Python finds no \B in an empty text, the published dialect does
        candidates = [text for text in candidates if text]
    for text in candidates:
        assert found(text) == (judge.search(text.encode("latin-1")) is not None), (pattern, text)


@settings(deadline=None, max_examples=examples(300))
@given(patterns)
def test_every_pattern_that_we_take_the_published_parser_takes_too(pattern: str) -> None:
    search(pattern)
    assert "error" not in parse_expression(
        show(Compare(Field("http.host"), "matches", Pattern(pattern)))
    ), pattern


REFUSED_BY_BOTH = [
    "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", r"\0", "*", "a|*", "(*)", "(a", "a)", "[a", "[z-a]", "{", "a{", "a{,5}", "a{2,1}", "a{1,2",
    r"\Z", r"\C", r"\Qa\E", r"\pL", r"\p{Greek}", r"\e", r"\K", r"\h", r"\R", r"\G", r"\é", r"[\b]", r"[\A]", "(?z)a", "(?P=a)", "(?#c)", "(?>a)",
    "(?)a", "(?i-)a", "(?ii)a", "(?i", "[é]", "[]", "[^]", r"[\d-z]", r"[!-\d]", r"\xZ", r"\x{110000}", r"[\x{20ac}]", "(?P<a", "\\",
]  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED_BY_BOTH)
def test_what_the_published_dialect_does_not_have_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        search(pattern)
    assert str(caught.value)
    assert "error" in parse_expression(
        show(Compare(Field("http.host"), "matches", Pattern(pattern)))
    ), pattern


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("é+", "\xc3\xa9\xc3\xa9", "\xc3"),
        ("^é{2}$", "\xc3\xa9\xc3\xa9", "\xc3\xa9\xa9"),
        (r"^\x{20ac}$", "\xe2\x82\xac", "\xac"),
        (r"^\u00e9$", "\xe9", "\xc3\xa9"),
        ("(?-u)^\\xff$", "\xff", "\xc3\xbf"),
        ("(?P<year>[0-9]{4})-(?<month>[0-9]{2})", "on 2024-05", "2024"),
        ("a$", "ba", "a\n"),
        ("(?m)a$", "a\nb", "ab"),
        ("(?U)^a+$", "aaa", "b"),
        ("(?i)shop", "SHOP", "sop"),
        ("(?s-i:A.)", "A\n", "a\n"),
        ("[[:alpha:][:digit:]]", "a", "-"),
        ("[^[:alpha:]]", "1", "ab"),
        (r"a\_b\ c\#", "a_b c#", "abc"),
        ("a{ 2 , 3 }b", "aab", "ab"),
        ("^(?:)$", "", "a"),
        ("", "anything", None),
    ],
)
def test_a_pattern_reads_bytes(pattern: str, inside: str, outside: str | None) -> None:
    found = search(pattern)
    assert found(inside)
    assert outside is None or not found(outside)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?x)a",
        "[a&&b]",
        "[a[b]]",
        "a++",
        "a{2}{3}",
        r"\<a",
        r"\b{start}",
        "(?R)a",
        "(?u)a",
        "a{1001}",
        "((a{100}){10}){10}",
        "[!-[:alpha:]]",
        "[[:alpha:]-z]",
    ],
)
def test_what_the_engine_does_not_have_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(PatternRefused, match=r"\w+ \w+"):
        search(pattern)


def test_a_pattern_that_needs_too_much_memory_is_refused() -> None:
    with pytest.raises(PatternRefused, match="too large"):
        search("|".join(f"{index:x}[^{index % 10}]{{1,1000}}" for index in range(270)))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a*)*b", "a" * 60_000),
        ("(a|aa)+$", "a" * 60_000 + "b"),
        ("(.*)(.*)(.*)(.*)x", "y" * 20_000),
    ],
)
def test_patterns_that_take_others_for_ever_take_a_moment(pattern: str, text: str) -> None:
    found = search(pattern)
    begun = time.process_time()
    assert not found(text)
    assert time.process_time() - begun < 2


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=255), max_size=12))
def test_any_text_is_a_pattern_or_is_refused(text: str) -> None:
    with contextlib.suppress(PatternRefused):
        assert search(text)("abc") in (True, False)
        assert translated(text).isascii()


stars = (
    st.lists(st.sampled_from(["a", "b", "B", "*", r"\*", r"\\", ".", "\xe9", "\n"]), max_size=7)
    .map("".join)
    .filter(lambda text: "**" not in text)
)


@settings(deadline=None, max_examples=examples(300))
@given(
    stars,
    st.lists(st.text("aAbB*\\.\xe9\xc9\n", max_size=7), min_size=3, max_size=8),
    st.booleans(),
)
def test_a_wildcard_fits_what_the_same_regular_expression_fits(
    pattern: str, candidates: list[str], strict: bool
) -> None:
    parts = [
        re.escape(part[-1]) if part != "*" else ".*"
        for part in re.findall(r"\\.|.", pattern, re.DOTALL)
    ]
    judge = re.compile(
        "".join(parts).encode("latin-1"), re.DOTALL if strict else re.DOTALL | re.IGNORECASE
    )
    fits = wildcard(pattern, strict)
    for text in candidates:
        assert fits(text) == (judge.fullmatch(text.encode("latin-1")) is not None), (pattern, text)


def test_a_hostile_wildcard_takes_a_moment() -> None:
    fits = wildcard("a*" * 1000 + "b", strict=False)
    begun = time.process_time()
    assert not fits("a" * 60_000)
    assert time.process_time() - begun < 2


@given(st.text(st.characters(max_codepoint=255)))
def test_case_is_that_of_ascii(text: str) -> None:
    assert lower(text).encode("latin-1") == text.encode("latin-1").lower()
    assert upper(text).encode("latin-1") == text.encode("latin-1").upper()
