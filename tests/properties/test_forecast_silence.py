"""What a silent data center does says nothing of the pace of a line."""

import pytest
from admission_world import START_MS, small_room

from greenroom.admission.forecast.forecast import Forecaster, ForecastInput


def scales(silent: range) -> list[float]:
    """What forecasts are scaled by in a room that lets in ten a second, half of them where nothing
    is heard in these seconds.
    """
    forecaster, ended, unsaid, found = (
        Forecaster(small_room(total_active_users=1_200, new_users_per_minute=6_000), START_MS),
        0,
        0,
        [],
    )
    for second in range(2, 900, 2):
        now_ms = START_MS + second * 1_000
        unsaid += 10
        heard = ("here",) if second in silent else ("here", "there")
        for name, ages_ms in zip(
            heard, ([0] * 10, [2_000 * (ago // 10) for ago in range(unsaid)]), strict=False
        ):
            forecaster.admitted(name, ages_ms, now_ms)
            forecaster.meet(name, now_ms)
            forecaster._endings.end(name, 24, 10 if second > 120 else 0)
        unsaid = unsaid if second in silent else 0
        ended += 20 if second > 120 else 0
        returning = ((float(second - silent.start), 600),) if second in silent else ()
        sessions = {name: min(600, 5 * second) for name in heard}
        forecaster.think(
            ForecastInput(sessions, 0, 0, 500, ended, {now_ms // 1000 - 1: 500}, (), returning),
            now_ms,
        )
        found.append(forecaster._track.scale)
    return found


def test_what_a_silent_data_center_lets_in_is_not_taken_for_another_pace() -> None:
    """Half of the room is not heard for three minutes, and then says in one report what it has let
    in, as many as ever.
    """
    assert scales(range(300, 480)) == pytest.approx(scales(range(0)), abs=0.03)
