"""Percentiles are values that were measured, spans are checked, and latency in words is short."""

import pytest

from greenroom.health.alerts import in_words
from greenroom.health.history import span, spread
from greenroom.web.refusals import Refused


def test_percentiles_are_values_that_were_measured() -> None:
    assert spread([]) is None
    assert spread([3.0]) == {"p50": 3.0, "p75": 3.0, "p95": 3.0, "p99": 3.0}
    assert spread([float(value) for value in range(100, 0, -1)]) == {
        "p50": 50.0,
        "p75": 75.0,
        "p95": 95.0,
        "p99": 99.0,
    }


def test_a_span_ends_now_and_is_a_day_long_unless_something_else_is_said() -> None:
    now_ms = 1_700_000_000_000
    assert span(None, None, now_ms) == (now_ms + 1 - 86_400_000, now_ms + 1)
    assert span("2023-01-01T00:00:00Z", "2023-01-02T00:00:00Z", now_ms) == (
        1_672_531_200_000,
        1_672_617_600_000,
    )
    with pytest.raises(Refused) as refused:
        span("yesterday", "now", now_ms)
    assert len(refused.value.faults) == 2


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "none"), (999, "0s"), (61_000, "1m1s"), (3_725_000, "1h2m5s")]
)
def test_spans_in_words(ms: int, words: str) -> None:
    assert in_words(ms) == words
