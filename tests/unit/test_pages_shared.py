"""The page that everybody without a place sees is made once a second, and goes out compressed to
browsers that take it so.
"""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.model.room import Room
from greenroom.model.visit import Estimate, Held
from greenroom.pages import compile_page
from greenroom.pages.accept_headers import takes_gzip
from greenroom.pages.builtin import SHARED, BuiltIn, view_of
from greenroom.pages.language import FALLBACK, language

ROOM = {"name": "a", "host": "*", "total_active_users": 1, "new_users_per_minute": 1}
PAGE = compile_page(Room(**ROOM))
NOW_MS = 1_790_000_000_000

visitors = st.builds(
    Held,
    now_ms=st.integers(NOW_MS, NOW_MS + 3_000),
    method=st.sampled_from(("fifo", "random", "passthrough", "reject")),
    last_updated_ms=st.integers(NOW_MS - 2_000, NOW_MS),
    refresh_s=st.integers(0, 3),
    next_try_s=st.integers(0, 3),
    estimate=st.none() | st.builds(Estimate, st.just(1.0), st.floats(1, 9_000), st.just(9_000.0)),
    queue_all=st.booleans(),
    queue_full=st.booleans(),
    position=st.integers(0, 5),
    ahead=st.integers(0, 5),
    waiting=st.integers(0, 50),
    joined_ms=st.integers(NOW_MS - 5_000, NOW_MS),
    in_line=st.booleans(),
    receipt=st.sampled_from(("", "0f" * 16)),
)


def test_the_views_that_are_shared_have_no_number() -> None:
    assert {"placing", "closed"} == SHARED


@given(st.lists(visitors, min_size=2, max_size=6))
def test_anything_that_was_shown_before_everyone_sees_the_page_of_the_own_moment(
    several: list[Held],
) -> None:
    for held in several:
        afresh = BuiltIn(language(FALLBACK)).html(held)[0]
        assert PAGE.html(held) == afresh
        _, body = PAGE.shown(held, b"gzip, deflate, br")
        assert body == afresh or gzip.decompress(body) == afresh


@given(visitors)
def test_only_a_page_that_says_nothing_of_its_visitor_is_compressed(held: Held) -> None:
    head, body = PAGE.shown(held, b"gzip")
    packed = head.get(b"Content-Encoding") == b"gzip"
    assert packed == (view_of(held) in SHARED and not held.in_line and not held.receipt)
    assert packed == (body[:2] == b"\x1f\x8b")
    assert head.get(b"Vary").startswith(b"Accept-Language, Accept-Encoding, ")
    if packed:
        assert str(held.joined_ms).encode() not in gzip.decompress(body)


def test_newcomers_of_one_second_see_the_very_same_page_and_it_is_half_as_long() -> None:
    def newcomer(ms: int) -> Held:
        return Held(NOW_MS + ms, "fifo", NOW_MS + ms, 3, 2, joined_ms=NOW_MS + ms)

    _, first = PAGE.shown(newcomer(1), b"gzip")
    assert PAGE.shown(newcomer(999), b"gzip")[1] is first
    assert PAGE.shown(newcomer(1_000), b"gzip")[1] != first
    assert len(first) < len(PAGE.html(newcomer(1))) / 2


def test_a_custom_page_is_its_visitors_own() -> None:
    page = compile_page(Room(**ROOM, custom_page_html="<p>{{lastUpdated}}"))
    head, body = page.shown(Held(NOW_MS, "fifo", NOW_MS, 3), b"gzip")
    assert (head, body) == (page.html_headers, b"<p>2026-09-21T14:13:20.000Z")
    assert b"Accept-Encoding" not in head.get(b"Vary")


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        (None, False),
        (b"", False),
        (b"gzip", True),
        (b"gzip, deflate, br, zstd", True),
        (b"br;q=1.0, GZIP;q=0.8, *;q=0.1", True),
        (b"x-gzip", True),
        (b"gzip ; q=0.001", True),
        (b"gzip;q=0", False),
        (b"gzip;q=0.000, deflate", False),
        (b"*", False),
        (b"identity", False),
        (b"notgzip, gzipped", False),
        (b"gzip;q=2", False),
        (b"br," * 100 + b"gzip", False),
    ],
)
def test_a_compressed_page_goes_to_the_one_who_names_gzip(
    header: bytes | None, takes: bool
) -> None:
    assert takes_gzip(header) is takes
