"""Peaks and lines in the table of rooms: what the analytics know, asked once a minute, labelled
when generated, left out when unknown.
"""

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dashboard_rig import dashboard_in
from live_rig import sale_parts

from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, RoomPlace
from greenroom.configuration.state import RoomState
from greenroom.dashboard.room_peaks import FRESH_MS, LINE_HIGH, LINE_WIDE, PeakCache
from greenroom.decision.room_view import Figures
from greenroom.errors import StorageFailed

END_S = 1_700_000_100  # a whole five minutes
ROOMS = frozenset({"r1", "r2"})


def store_of_a_sale(folder: Path) -> Keeper:
    keeper = Keeper(DuckEngine(folder / "analytics.duckdb"), lambda _: RoomPlace("z1", "sale"))
    parts = sale_parts("r1", END_S, 90)
    for begin in range(0, len(parts), 60):
        keeper.write(
            parts[begin : begin + 60], parts[min(begin + 59, len(parts) - 1)].minute * 60 + 60
        )
    return keeper


class Counting:
    """A store that counts the questions, and fails when it is told to."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.asked, self.fails = keeper, 0, False

    def answer(self, *of: Any) -> Any:
        self.asked += 1
        if self.fails:
            raise StorageFailed("gone")
        return self.keeper.answer(*of)


def test_peaks_are_those_of_the_minutes_and_asked_once_a_minute(tmp_path: Path) -> None:
    store, cache = Counting(store_of_a_sale(tmp_path)), PeakCache()
    now_ms = END_S * 1000
    cache.of_all(store, ROOMS, now_ms)  # type: ignore[arg-type]
    cache.settle()
    found = cache.of_all(store, ROOMS, now_ms)  # type: ignore[arg-type]
    parts = sale_parts("r1", END_S, 90)
    assert set(found) == {"r1"}
    assert found["r1"].active == max(max(part.rollup.tracks["here"].active) for part in parts)
    assert found["r1"].waiting == max(max(part.rollup.tracks["here"].queued) for part in parts)
    assert found["r1"].generated is True
    points = [tuple(map(int, point.split(","))) for point in found["r1"].points.split()]
    assert len(points) == 12
    assert all(0 <= x <= LINE_WIDE and 0 < y <= LINE_HIGH for x, y in points)
    asked = store.asked
    assert cache.of_all(store, ROOMS, now_ms + FRESH_MS - 1) == found  # type: ignore[arg-type]
    assert store.asked == asked
    store.fails = True
    cache.of_all(store, ROOMS, now_ms + FRESH_MS)  # type: ignore[arg-type]
    cache.settle()
    assert cache.of_all(store, ROOMS, now_ms + FRESH_MS) == found  # type: ignore[arg-type]
    assert store.asked == asked + 1
    store.keeper.close()


def test_a_slow_store_delays_no_table(tmp_path: Path) -> None:
    store, cache, answer = Counting(store_of_a_sale(tmp_path)), PeakCache(), threading.Event()
    slow = SimpleNamespace(answer=lambda *of: answer.wait(60) and store.answer(*of))
    assert cache.of_all(slow, ROOMS, END_S * 1000) == {}  # type: ignore[arg-type]
    assert cache.of_all(slow, ROOMS, END_S * 1000 + FRESH_MS) == {}, "one thread asks at a time"  # type: ignore[arg-type]
    answer.set()
    cache.settle()
    assert set(cache.of_all(slow, ROOMS, END_S * 1000)) == {"r1"}  # type: ignore[arg-type]
    assert store.asked == 2
    store.keeper.close()


def test_the_table_shows_them_with_the_label_of_generated_data(tmp_path: Path) -> None:
    with dashboard_in(tmp_path) as rig:
        rig.fill()
        rig.clock.at_ms = END_S * 1000
        shop = rig.store.read().rooms["r1"].record
        rig.shown.rooms = (RoomState(shop, Figures(active=99_999), {}),)
        keeper = store_of_a_sale(tmp_path)
        rig.app.parts.put(ANALYTICS_STORE, keeper)
        rig.person("viewer").get("/rooms")
        rig.app.peaks.settle()
        text = rig.person("viewer").get("/rooms").text
        row = re.search(r"<tr>\s*<th[^>]*><a href=\"/zones/z1/rooms/r1\".*?</tr>", text, re.S)
        assert row
        assert "<polyline points=" in row[0]
        assert "sample data" in row[0]
        assert "99,999 active, " in row[0], "now there are more than in any recorded minute"
        other = re.search(r"<tr>\s*<th[^>]*><a href=\"/zones/z2/rooms/r2\".*?</tr>", text, re.S)
        assert other
        assert "<polyline" not in other[0]
        keeper.close()
