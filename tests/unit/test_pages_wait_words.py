"""How the page says a wait, an estimate, a range and a chance in words."""

import pytest

from greenroom.pages.language import FALLBACK, Language, language


@pytest.mark.parametrize("text", ["a <b>", 'say "x"', "a & b", "back\\slash", "line\nbreak"])
def test_a_text_that_would_need_escaping_is_refused_when_the_language_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        Language({"tag": "xx", "views": {"fifo": {"title": text}}})


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0, "any moment now"),
        (1, "about 1 minute"),
        (12, "about 12 minutes"),
        (60, "about 1 hour"),
        (61, "about 1 hour 5 minutes"),
        (125, "about 2 hours 5 minutes"),
        (1_440, "about 24 hours"),
        (1_441, "more than a day"),
    ],
)
def test_a_wait_is_said_the_way_people_say_it(minutes: int, words: str) -> None:
    assert language(FALLBACK).wait(minutes) == words


@pytest.mark.parametrize(
    ("minutes", "most", "words"),
    [
        (12, 18, "about 12 minutes (18 at most)"),
        (12, 12, "about 12 minutes"),
        (12, 0, "about 12 minutes"),
        (0, 1, "any moment now"),
        (50, 70, "about 50 minutes (1 hour 10 minutes at most)"),
        (61, 64, "about 1 hour 5 minutes"),
        (1_000, 1_441, "about 16 hours 40 minutes"),
    ],
)
def test_an_estimate_says_how_long_it_takes_at_most_where_that_adds_something(
    minutes: int, most: int, words: str
) -> None:
    assert language(FALLBACK).at_most(minutes, most) == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (5, 15, "5 to 15 minutes"),
        (5, 5, "about 5 minutes"),
        (0, 5, "about 5 minutes"),
        (0, 0, "any moment now"),
        (45, 120, "45 minutes to 2 hours"),
        (120, 5_000, "2 hours to more than a day"),
        (2_000, 5_000, "more than a day"),
    ],
)
def test_a_range_is_said_without_repeating(low: int, high: int, words: str) -> None:
    assert language(FALLBACK).span(low, high) == words


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (0, ""),
        (1e-9, "less than 1 in 1,000"),
        (0.1, "about 1 in 10"),
        (0.9, "very good"),
        (1, "very good"),
    ],
)
def test_a_chance_is_said_as_one_in_so_many(chance: float, words: str) -> None:
    assert language(FALLBACK).chance(chance) == words
