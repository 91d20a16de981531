"""Quantiles from sketches are near measured values, and sketches of parts add up to that of all."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.health.rules.sketch import Sketch

TIMES = st.lists(st.floats(0.01, 60_000), min_size=1, max_size=60)


@given(TIMES, st.floats(0, 100))
def test_a_quantile_is_within_four_percent_of_the_value_at_its_rank(
    times: list[float], percent: float
) -> None:
    exact = sorted(times)[max(1, ceil(percent / 100 * len(times))) - 1]
    assert Sketch.of(times).quantile(percent) == pytest.approx(exact, rel=0.041, abs=0.011)


@given(TIMES, TIMES)
def test_sketches_add_up(some: list[float], others: list[float]) -> None:
    whole, added = Sketch.of([*some, *others]), Sketch.of(some)
    added.add(Sketch.of(others))
    assert (added.counts, added.least, added.greatest) == (
        whole.counts,
        whole.least,
        whole.greatest,
    )
    assert added.mean == pytest.approx(whole.mean)
