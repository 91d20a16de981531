"""On which span analytics open: the shortest usual one that holds all that is known of a young
room.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from dashboard_rig import DashboardRig
from live_rig import sale_parts

from greenroom.analytics.dashboard.panels import opening_span
from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, RoomPlace
from greenroom.errors import StorageFailed

END_S = 1_700_000_100


def recorded(folder: Path, minutes: int) -> Keeper:
    """A store in which the first minute of r1 began so many minutes ago."""
    keeper = Keeper(DuckEngine(folder / "analytics.duckdb"), lambda _: RoomPlace("z1", "sale"))
    parts = sale_parts("r1", END_S, minutes)
    for begin in range(0, len(parts), 60):
        keeper.write(
            parts[begin : begin + 60], parts[min(begin + 59, len(parts) - 1)].minute * 60 + 60
        )
    return keeper


class FailingStore:
    def answer(self, *_of: Any) -> Any:
        raise StorageFailed("gone")


@pytest.mark.parametrize(
    ("minutes", "span"),
    [(0, "1h"), (5, "1h"), (59, "1h"), (65, "6h"), (355, "6h"), (370, "24h"), (1500, "24h")],
)
def test_a_room_opens_on_the_shortest_span_that_holds_all_of_it(
    tmp_path: Path, minutes: int, span: str
) -> None:
    keeper = recorded(tmp_path, minutes)
    assert opening_span(keeper, "r1", END_S) == span
    assert opening_span(keeper, "another", END_S) == "1h"
    keeper.close()


def test_a_store_that_does_not_answer_leaves_the_usual_span() -> None:
    assert opening_span(FailingStore(), "r1", END_S) == "24h"  # type: ignore[arg-type]
    assert opening_span(None, "r1", END_S) == "24h"


def test_a_link_with_a_span_shows_that_span_and_one_without_fits_the_room(
    dashboard: DashboardRig, tmp_path: Path
) -> None:
    keeper = recorded(tmp_path, 5)
    dashboard.clock.at_ms = END_S * 1000
    dashboard.app.parts.put(ANALYTICS_STORE, keeper)
    viewer, path = dashboard.person("viewer"), "/zones/z1/rooms/r1/analytics"
    for query, label in (
        ("", "1 hour"),
        ("?compare=before", "1 hour"),
        ("?span=24h", "24 hours"),
        ("?span=6h", "6 hours"),
    ):
        assert re.findall(r'aria-current="true">([^<]+)', viewer.get(path + query).text) == [
            label
        ], query
    span = viewer.get(f"{path}?from={END_S - 7200}&to={END_S - 3600}").text
    assert 'aria-current="true"' not in span
    assert viewer.get(f"{path}/csv").text.count("\r\n") == viewer.get(
        f"{path}/csv?span=24h"
    ).text.count("\r\n")
    keeper.close()
