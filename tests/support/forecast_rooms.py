"""Rooms as a forecast sees them: a forecaster that was told of a made-up past, and the books of one
moment.
"""

from collections import Counter, deque
from random import Random

from admission_world import START_MS, small_room

from greenroom.admission.forecast.forecast import Forecaster, ForecastInput
from greenroom.admission.messages.sync import SyncUp
from greenroom.admission.messages.wait_reader import WaitReader
from greenroom.admission.messages.wait_table import WaitTable
from greenroom.model.visit import Estimate


def report(number: int, **said: object) -> SyncUp:
    """What a data center reports, where it matters to a forecast."""
    values: dict[str, object] = {
        "data_center": "here", "epoch": 1, "number": number, "sent_ms": 0, "granted_seen": 0, "returned_permits": 0, "returned_freed": 0,
        "used": 0, "over": 0, "settled": 0, "admitted": 0, "ages_ms": (), "applied": 0, "permits": 0, "waiting": 0, "seconds": (),
        "arrivals_per_s": 0.0,
    }  # fmt: skip
    return SyncUp(**{**values, **said})  # type: ignore[arg-type]


class Past:
    """A room with a crowd at its door for so many minutes, told to a forecaster second by second.

    Sessions last a whole number of seconds from `stay_s`. Everything happens `times` times, and the
    limits are as many times larger.
    """

    def __init__(
        self,
        total: int = 200,
        per_minute: int = 300,
        method: str = "fifo",
        stay_s: tuple[int, int] = (40, 160),
        minutes: int = 10,
        lost_in_thousand: int = 0,
        seed: int = 1,
        times: int = 1,
    ) -> None:
        draw = Random(seed)
        self.times, self.total, self.now_ms = times, total, START_MS
        room = small_room(
            total_active_users=total * times,
            new_users_per_minute=per_minute * times,
            queueing_method=method,
        )
        self.forecaster = Forecaster(room, self.now_ms)
        self.inside = 0
        self.ended: Counter[int] = Counter()
        endings: dict[int, list[int]] = {}
        minute: deque[int] = deque()
        lost = 0
        for second in range(minutes * 60):
            self.now_ms += 1_000
            while minute and minute[0] <= second - 60:
                minute.popleft()
            for begun_ms in endings.pop(second, []):
                self.ended[self.now_ms // 5_000 - begun_ms // 5_000] += times
                self.inside -= 1
            entering = max(
                0, min(total - self.inside, per_minute - len(minute), per_minute // 60 + 1)
            )
            for _ in range(entering):
                endings.setdefault(second + draw.randint(*stay_s), []).append(self.now_ms)
            self.inside += entering
            minute.extend([second] * entering)
            lost += times * (draw.random() * 1_000 < lost_in_thousand)
            self.forecaster.admitted("here", [0] * (entering * times), self.now_ms)
            up = report(
                second + 1, ended=tuple(self.ended.items()), joined=2 * times * second, lost=lost
            )
            self.forecaster.hear(up, self.now_ms)

    def facts(self, waiting: int, over_s: int = 100) -> ForecastInput:
        """The books now, with so many in line who came evenly over the last so many seconds."""
        sums = [waiting * second // over_s for second in range(over_s + 1)]
        seconds = {
            self.now_ms // 1000 - age: sums[age + 1] - sums[age]
            for age in range(over_s)
            if sums[age + 1] > sums[age]
        }
        sessions = self.inside * self.times
        return ForecastInput(
            {"here": sessions},
            0,
            self.total * self.times - sessions,
            waiting,
            sum(self.ended.values()),
            seconds,
        )

    def wait_table(self, waiting: int) -> WaitTable:
        """What is believed now when so many wait."""
        self.forecaster.think(self.facts(waiting), self.now_ms)
        assert self.forecaster.wait_table is not None
        return self.forecaster.wait_table


def wait_reader_on(wait_table: WaitTable) -> WaitReader:
    """As a data center sees it that got it at once and has the same clock."""
    wait_reader = WaitReader()
    wait_reader.take(wait_table, wait_table.made_ms, wait_table.made_ms)
    return wait_reader


def quantiles(estimate: Estimate) -> tuple[float, float, float, float]:
    """In their order."""
    return estimate.p25_s, estimate.p50_s, estimate.p75_s, estimate.most_s
