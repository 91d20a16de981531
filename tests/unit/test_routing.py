"""Which room covers a request."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.model.route import Route
from greenroom.request.claims import Claims, Footprint
from greenroom.request.routing import RouteTable


def table(*routes, any_case=False):
    return RouteTable((Route(host, path), any_case, f"{host}{path}") for host, path in routes)


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("/shop", True),
        ("/shop/", True),
        ("/shop/x/y", True),
        ("/shopping", False),
        ("/", False),
        ("/Shop", False),
        ("/x/shop", False),
    ],
)
def test_a_route_covers_its_path_and_what_is_below_it_on_segment_boundaries(path, covered):
    assert (table(("a.example", "/shop")).find("a.example", path) is not None) == covered


def test_a_closing_slash_in_the_route_changes_nothing():
    found = table(("a.example", "/shop/"))
    assert (
        found.find("a.example", "/shop") == found.find("a.example", "/shop/x") == "a.example/shop/"
    )


def test_the_longest_path_wins():
    found = table(("a.example", "/"), ("a.example", "/shop"), ("a.example", "/shop/sale"))
    assert found.find("a.example", "/shop/sale/1") == "a.example/shop/sale"
    assert found.find("a.example", "/shop/other") == "a.example/shop"
    assert found.find("a.example", "/about") == "a.example/"


def test_hosts_are_exact():
    found = table(("a.example", "/"))
    assert found.find("www.a.example", "/") is None
    assert found.find("example", "/") is None


def test_an_exact_host_goes_before_any_host_even_with_a_shorter_path():
    found = table(("*", "/shop"), ("a.example", "/"))
    assert found.find("a.example", "/shop") == "a.example/"
    assert found.find("b.example", "/shop") == "*/shop"
    assert found.find("b.example", "/") is None


def test_a_case_insensitive_route_covers_any_case_and_the_others_stay_exact():
    found = RouteTable(
        [(Route("a.example", "/Sale"), True, "sale"), (Route("a.example", "/Shop"), False, "shop")]
    )
    assert found.find("a.example", "/sALE/x") == "sale"
    assert found.find("a.example", "/shop") is None
    assert found.find("a.example", "/Shop") == "shop"


def test_an_encoded_spelling_of_a_covered_path_is_covered():
    assert table(("a.example", "/c++")).find("a.example", "/c%2B%2B/x") is not None


def test_percent_escapes_in_a_route_are_read_in_canonical_form():
    found = table(("a.example", "/caf%c3%a9/%7eme"))
    assert found.find("a.example", "/caf%C3%A9/~me") is not None


segments = st.lists(st.sampled_from(["a", "b", "ab", "A"]), max_size=4)


@given(st.lists(segments, max_size=6, unique_by=tuple), segments)
def test_the_table_agrees_with_trying_every_route(routes, wanted):
    found = table(*[("h", "/" + "/".join(parts)) for parts in routes]).find(
        "h", "/" + "/".join(wanted)
    )
    fitting = [parts for parts in routes if wanted[: len(parts)] == parts]
    assert found == (("h/" + "/".join(max(fitting, key=len))) if fitting else None)


def test_the_most_specific_host_is_asked_first() -> None:
    entries = [
        ("*", "/"),
        ("*.example.com", "/"),
        ("*.shop.example.com", "/sale"),
        ("a.shop.example.com", "/sale/today"),
    ]
    table = RouteTable((Route(host, path), False, f"{host}{path}") for host, path in entries)
    asked = {
        ("a.shop.example.com", "/sale/today/x"): "a.shop.example.com/sale/today",
        ("a.shop.example.com", "/sale"): "*.shop.example.com/sale",
        ("a.shop.example.com", "/"): "*.example.com/",
        ("b.c.shop.example.com", "/sale/1"): "*.shop.example.com/sale",
        ("shop.example.com", "/sale"): "*.example.com/",
        ("example.com", "/"): "*/",
        ("notexample.com", "/"): "*/",
        ("com", "/"): "*/",
    }
    assert {(host, path): table.find(host, path) for host, path in asked} == asked


def test_a_pattern_does_not_cover_the_name_itself() -> None:
    table = RouteTable([(Route("*.example.com"), False, 1)])
    assert table.find("example.com", "/") is None
    assert table.find(".example.com", "/") == 1, (
        "no such host is ever read, so it is nobody's way around"
    )
    assert table.find("a.b.example.com", "/") == 1


def test_no_other_case_of_a_letter_gets_around_a_case_insensitive_room():
    """Whatever an application does to compare without regard to case: each of these functions is
    what some of them do.
    """
    folds = (
        str.lower,
        str.upper,
        str.title,
        str.casefold,
        str.swapcase,
        lambda text: text.upper().lower(),
        lambda text: text.lower().upper(),
    )
    letters = [
        chr(point)
        for point in range(0x110000)
        if not 0xD800 <= point < 0xE000 and not chr(point).isascii()
    ]
    letters = [letter for letter in letters if any(fold(letter) != letter for fold in folds)]
    assert len(letters) > 2_500
    for letter in (*letters, "K", "S", "SS", "i", "I"):
        found = table(("a.example", f"/shop/{quote(letter)}x"), any_case=True)
        for fold in folds:
            assert found.find("a.example", f"/SHOP/{quote(fold(letter))}X/y") is not None, (
                letter,
                fold(letter),
            )
    for one, other in (
        ("K", "\u212a"),
        ("s", "\u017f"),
        ("i", "\u0130"),
        ("i", "\u0131"),
        ("ss", "\u00df"),
    ):
        assert (
            table(("a.example", f"/{one}"), any_case=True).find("a.example", f"/{quote(other)}")
            is not None
        )


def test_a_case_sensitive_room_keeps_letters_apart_and_coverage_finds_the_same_clashes_as_matching():
    assert table(("a.example", "/caf%C3%A9")).find("a.example", "/caf%C3%89") is None
    claims: Claims[str] = Claims()
    claims.add("one", Footprint([("host", Route("a.example", "/caf%C3%A9"))], True, None))
    for path, any_case, owners in (("/CAF%C3%89", False, ["one"]), ("/cafe", True, [])):
        found = claims.clashes(Footprint([("host", Route("a.example", path))], any_case, None))
        assert [clash.owner for clash in found] == owners
