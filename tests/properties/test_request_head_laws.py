"""Laws of reading a request head: an answer for every bytes, one meaning, and the same meaning for the origin and for llhttp."""

import sys
from pathlib import Path

from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

from heads import any_heads, honest_heads, hostile_heads
from reading import check_head


@given(any_heads)
@settings(max_examples=600)
def test_any_bytes_are_understood_in_one_way_or_refused(block):
    check_head(block)


@given(hostile_heads())
@settings(max_examples=600)
def test_a_hostile_head_is_understood_in_one_way_or_refused(block):
    check_head(block)


@given(honest_heads())
def test_an_honest_head_is_understood(block):
    assert check_head(block) is not None
