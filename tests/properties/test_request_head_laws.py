"""Laws of reading a request: an answer for any bytes, one meaning, the same for the origin and for
llhttp; bodies and cookies too.
"""

import pytest
from body_and_cookie_laws import (
    NAME,
    NOW_MS,
    ROOM,
    SEALED,
    SEALER,
    check_body,
    check_cookies,
    ticket_values,
)
from examples import examples
from hypothesis import HealthCheck, given, settings
from request_laws import check_head
from request_material import any_heads, chunked_bodies, cookie_headers, honest_heads, hostile_heads

LONG = settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))


@given(any_heads)
@settings(max_examples=examples(300))
def test_any_bytes_are_understood_in_one_way_or_refused(block):
    check_head(block)


@given(hostile_heads())
@settings(max_examples=examples(300))
def test_a_hostile_head_is_understood_in_one_way_or_refused(block):
    check_head(block)


@given(honest_heads())
def test_an_honest_head_is_understood(block):
    assert check_head(block) is not None


@given(chunked_bodies)
@settings(max_examples=examples(300))
def test_a_body_is_read_the_same_however_it_is_cut(data):
    check_body(data)


@given(cookie_headers(SEALED))
@settings(max_examples=examples(300))
def test_a_cookie_header_holds_few_candidates_and_only_our_own_tickets_open(header):
    check_cookies(header)


def test_the_material_holds_a_ticket_that_opens():
    (value,) = ticket_values(((b"cookie", b"a=1; __cfwaitingroom=" + SEALED),), NAME)
    assert SEALER.open(value, ROOM, NOW_MS) is not None


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("law", "material"),
    [
        (check_head, any_heads),
        (check_head, hostile_heads()),
        (check_body, chunked_bodies),
        (check_cookies, cookie_headers(SEALED)),
    ],
)
def test_a_long_search_finds_nothing(law, material):
    LONG(given(material)(law))()
