"""Keeps each part once, makes minutes of parts and hours and days of minutes. A row is computed
from the rows below it and written whole, so a late part recomputes its minute, hour and day.
Writing is for one thread.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from greenroom.analytics import histogram
from greenroom.analytics.columns import KEPT, MINUTE_COLUMNS, TIMES
from greenroom.analytics.metrics import DAY_S, HOUR_S, MINUTE_S
from greenroom.analytics.question import AnalyticsAnswer, Known, Piece, Question
from greenroom.analytics.rollup import Part, Rollup, merge, minute_row
from greenroom.analytics.store.answers import answer, pieces_text, rooms_condition
from greenroom.analytics.store.engine import (
    DAYS,
    FACTS,
    HOURS,
    MINUTES,
    NEW_COLUMNS,
    PARTS,
    ROOMS,
    TABLES,
    VERSION,
    Engine,
    Table,
    Values,
)
from greenroom.errors import StorageFailed

GRACE_S = 120
"""An hour is computed this long after its end."""

LATE_S = 6 * HOUR_S
"""Parts are kept this long to recognize duplicates; older ones are refused."""

ROOMS_AT_ONCE = 50
"""Rooms between two calls of `breathe`, so that visitors are not held up."""

_IN_ORDER = itemgetter(*MINUTE_COLUMNS, *TIMES)
_decode = msgspec.msgpack.Decoder(Rollup).decode
_encode = msgspec.msgpack.Encoder().encode


class Retention(msgspec.Struct, frozen=True):
    minutes_s: int = 31 * DAY_S
    hours_s: int = 396 * DAY_S
    days_s: int = 0


class RoomPlace(NamedTuple):
    zone: str = ""
    name: str = ""


class Written(NamedTuple):
    taken: int = 0
    repeated: int = 0
    late: int = 0


class Keeper:
    def __init__(
        self,
        engine: Engine,
        place_of: Callable[[str], RoomPlace] = lambda _: RoomPlace(),
        retention: Retention = Retention(),  # noqa: B008 - frozen
        breathe: Callable[[], None] = lambda: None,
    ) -> None:
        """Creates and upgrades tables. Raises StorageFailed. `breathe` is called between pieces of
        long work.
        """
        self._engine = engine
        self._place_of = place_of
        self._retention = retention
        self._breathe = breathe
        engine.create()
        self._facts: dict[str, int] = {  # noqa: C416
            name: value for name, value in engine.select("SELECT name, value FROM facts")
        }
        self._numbers: dict[str, int] = {}
        self._places: dict[str, RoomPlace] = {}
        for number, room, zone, name in engine.select("SELECT number, id, zone, name FROM rooms"):
            self._numbers[room] = number
            self._places[room] = RoomPlace(zone, name)
        self._bring_up_to_date()

    def _bring_up_to_date(self) -> None:
        found = self._facts.get("version", VERSION)
        if found > VERSION:
            raise StorageFailed(
                f"{self._engine.name}: was written by a newer greenroom "
                f"(version {found} of the tables, this one knows {VERSION})"
            )
        for version in range(found + 1, VERSION + 1):
            for table in TABLES:
                self._engine.add_columns(table, NEW_COLUMNS[version].get(table.name, ()))
        self._engine.ready()
        with self._change():
            self._note("version", VERSION)

    # -- writing -----------------------------------------------------------------------------------

    def write(self, parts: Iterable[Part], now_s: int) -> Written:
        """All new parts or none. Raises StorageFailed."""
        wanted: dict[tuple[str, int, str], Part] = {}
        repeated = late = 0
        for part in parts:
            if part.minute * MINUTE_S < now_s - LATE_S:
                late += 1
            elif part.key in wanted:
                repeated += 1
            else:
                wanted[part.key] = part
        with self._change():
            taken = self._take(list(wanted.values()))
            last = max((part.minute for part in wanted.values()), default=0)
            if last > self._facts.get("last_minute", 0):
                self._note("last_minute", last)
        return Written(taken, repeated + len(wanted) - taken, late)

    def tend(self, now_s: int) -> None:
        """Raises StorageFailed."""
        self._close(HOURS, "hours_to", HOUR_S, now_s)
        self._close(DAYS, "days_to", DAY_S, now_s)
        self._forget(now_s)

    def begin(self, minute: int) -> int:
        """If the previous process was killed, marks the minute after its last one in every room it
        had, and returns their number. Raises StorageFailed.
        """
        found = self._engine.select("SELECT name, value FROM facts WHERE name = 'running'")
        killed = bool(found and found[0][1])
        last = self._facts.get("last_minute", 0)
        marked = self._mark_incomplete(last) if killed and last else 0
        with self._change():
            self._note("running", 1)
            # even where another one has written a part of this minute
            self._note("last_minute", minute - 1)
        return marked

    def _mark_incomplete(self, last: int) -> int:
        rows = self._engine.select(
            f"SELECT DISTINCT room FROM minutes "  # noqa: S608
            f"WHERE t IN ({last * MINUTE_S}, {(last + 1) * MINUTE_S})"
        )
        ids = {number: room for room, number in self._numbers.items()}
        parts = [
            Part(f"killed-{last}", last + 1, ids[number], Rollup(incomplete=True))
            for (number,) in rows
        ]
        self.write(parts, (last + 2) * MINUTE_S)
        return len(parts)

    def end(self) -> None:
        """Raises StorageFailed."""
        with self._change():
            self._note("running", 0)

    def close(self) -> None:
        self._engine.close()

    # -- parts and minutes -------------------------------------------------------------------------

    def _take(self, parts: Sequence[Part]) -> int:
        """Writes parts last: without transactions, an interrupted write is repeated."""
        self._register(sorted({part.room for part in parts}))
        known = self._known_parts({part.minute * MINUTE_S for part in parts})
        news = [
            part
            for part in parts
            if part.source not in known.get((part.minute * MINUTE_S, part.room), ())
        ]
        cells: dict[tuple[int, str], list[Rollup]] = defaultdict(list)
        for part in news:
            cells[part.minute * MINUTE_S, part.room].append(part.rollup)
        self._engine.insert(
            MINUTES,
            [self._minute(cell, rollups) for cell, rollups in cells.items() if cell not in known],
        )
        self._minutes_again({cell: rollups for cell, rollups in cells.items() if cell in known})
        self._again({(t // HOUR_S * HOUR_S, self._numbers[room]) for t, room in cells})
        self._engine.insert(
            PARTS,
            [
                (
                    part.minute * MINUTE_S,
                    self._numbers[part.room],
                    part.source,
                    _encode(part.rollup),
                )
                for part in news
            ],
        )
        return len(news)

    def _register(self, rooms: Sequence[str]) -> None:
        news, changed = [], []
        for room in rooms:
            place = self._place_of(room)
            if room not in self._numbers:
                self._numbers[room] = len(self._numbers) + 1
                news.append(room)
            elif place not in (self._places[room], RoomPlace()):
                changed.append(room)
            else:
                continue
            self._places[room] = place
        self._engine.insert(ROOMS, [self._room_row(room) for room in news])
        if changed:
            self._engine.replace(
                ROOMS,
                [self._room_row(room) for room in changed],
                f"number IN ({_listed(self._numbers[r] for r in changed)})",
            )

    def _room_row(self, room: str) -> Values:
        return self._numbers[room], room, *self._places[room]

    def _known_parts(self, times: set[int]) -> dict[tuple[int, str], set[str]]:
        if not times:
            return {}
        ids = {number: room for room, number in self._numbers.items()}
        found: dict[tuple[int, str], set[str]] = defaultdict(set)
        for t, number, source in self._engine.read(
            f"SELECT t, room, source FROM parts WHERE t IN ({_listed(times)})"  # noqa: S608
        ):
            found[t, ids[number]].add(source)
        return dict(found)

    def _minute(self, cell: tuple[int, str], rollups: Sequence[Rollup]) -> Values:
        return cell[0], self._numbers[cell[1]], *_IN_ORDER(minute_row(merge(rollups)))

    def _minutes_again(self, cells: Mapping[tuple[int, str], Sequence[Rollup]]) -> None:
        by_time: dict[int, dict[str, list[Rollup]]] = defaultdict(dict)
        for (t, room), rollups in cells.items():
            by_time[t][room] = list(rollups)
        ids = {number: room for room, number in self._numbers.items()}
        for t, parts in by_time.items():
            where = f"t = {t} AND {rooms_condition(self._numbers[room] for room in parts)}"
            for number, payload in self._engine.read(
                f"SELECT room, payload FROM parts WHERE {where}"  # noqa: S608
            ):
                parts[ids[number]].append(_decode(bytes(payload)))
            self._engine.replace(
                MINUTES,
                [self._minute((t, room), rollups) for room, rollups in parts.items()],
                where,
            )

    # -- hours and days ----------------------------------------------------------------------------

    def _again(self, cells: set[tuple[int, int]]) -> None:
        for table, name, width in ((HOURS, "hours_to", HOUR_S), (DAYS, "days_to", DAY_S)):
            by_time: dict[int, set[int]] = defaultdict(set)
            for t, number in cells:
                if t // width * width < self._facts.get(name, 0):
                    by_time[t // width * width].add(number)
            for t, numbers in by_time.items():
                self._work_out(table, t, width, sorted(numbers))

    def _close(self, table: Table, name: str, width: int, now_s: int) -> None:
        to_s = (now_s - GRACE_S) // width * width
        whole_to = self._facts.get(name)
        for (begin,) in self._engine.read(_begins_between(table, whole_to or 0, to_s, width)):
            with self._change():
                numbers = [
                    number
                    for (number,) in self._engine.read(_rooms_between(table, begin, begin + width))
                ]
                self._work_out(table, begin, width, sorted(numbers))
                self._note(name, begin + width)
            if table is HOURS:
                self._engine.settle(begin + width)
            self._breathe()
        if self._facts.get(name, -1) < to_s:
            with self._change():
                self._note(name, to_s)

    def _work_out(self, table: Table, begin: int, width: int, numbers: Sequence[int]) -> None:
        piece = [Piece(_below(table), begin, begin + width)]
        merged = ", ".join(f"{column.merge}({column.name})" for column in KEPT.values())
        for start in range(0, len(numbers), ROOMS_AT_ONCE):
            some = numbers[start : start + ROOMS_AT_ONCE]
            where = rooms_condition(some)
            text = (
                f"SELECT room, {merged} FROM ({pieces_text(piece, KEPT, where)}) "  # noqa: S608
                "AS pieces GROUP BY room"
            )
            times = self._histograms(piece, where)
            rows = [
                (begin, number, *values, *times.get(number, (b"", b"")))
                for number, *values in self._engine.read(text)
            ]
            self._engine.replace(table, rows, f"t = {begin} AND {where}")
            self._breathe()

    def _histograms(self, piece: Sequence[Piece], where: str) -> dict[int, tuple[bytes, ...]]:
        filled = f"{where} AND ({' OR '.join(f'{name}_count > 0' for name in TIMES)})"
        sums: dict[int, tuple[histogram.HistogramCounts, ...]] = {}
        for _, number, *packed in self._engine.read(pieces_text(piece, TIMES, filled)):
            into = sums.setdefault(number, tuple({} for _ in TIMES))
            for counts, data in zip(into, packed, strict=True):
                histogram.add(counts, histogram.unpacked(bytes(data)))
        return {number: tuple(map(histogram.packed, counts)) for number, counts in sums.items()}

    def _forget(self, now_s: int) -> None:
        """Deletes whole hours, so that there is rarely anything to do."""
        begin = now_s // HOUR_S * HOUR_S
        if self._facts.get("forgot_at", 0) >= begin:
            return
        kept = self._retention
        with self._change():
            self._delete_before(PARTS, begin - LATE_S - HOUR_S)
            for table, keep_s, name in (
                (MINUTES, kept.minutes_s, "minutes_from"),
                (HOURS, kept.hours_s, "hours_from"),
                (DAYS, kept.days_s, ""),
            ):
                oldest = (now_s - keep_s) // DAY_S * DAY_S
                if keep_s and self._delete_before(table, oldest) and name:
                    self._note(name, oldest)
            self._note("forgot_at", begin)

    def _delete_before(self, table: Table, oldest_s: int) -> bool:
        """Looks for rows first, because ClickHouse deletes slowly."""
        found = self._engine.read(f"SELECT 1 FROM {table.name} WHERE t < {oldest_s} LIMIT 1")  # noqa: S608 - names and numbers
        if found:
            self._engine.delete(table, f"t < {oldest_s}")
        return bool(found)

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        facts, numbers, places = dict(self._facts), dict(self._numbers), dict(self._places)
        try:
            with self._engine.change():
                yield
        except BaseException:
            self._facts, self._numbers, self._places = facts, numbers, places
            raise

    def _note(self, name: str, value: int) -> None:
        self._engine.replace(FACTS, [(name, value)], f"name = '{name}'")
        self._facts[name] = value

    # -- answering ---------------------------------------------------------------------------------

    @property
    def rooms(self) -> dict[str, RoomPlace]:
        return dict(self._places)

    def rooms_of(self, zone_id: str) -> list[str]:
        return [room for room, place in self.rooms.items() if place.zone == zone_id]

    def answer(self, question: Question, timeout_s: float | None = None) -> AnalyticsAnswer:
        """Raises Refused, SlowAnswer, StorageFailed."""
        return answer(self._engine, question, dict(self._numbers), self.tables_state(), timeout_s)

    def tables_state(self) -> Known:
        facts = self._facts
        return Known(
            facts.get("hours_to", 0),
            facts.get("days_to", 0),
            facts.get("minutes_from", 0),
            facts.get("hours_from", 0),
        )


def _begins_between(table: Table, begin: int, end: int, width: int) -> str:
    """Skips hours without rows, of which a long stop leaves many."""
    return (
        f"SELECT DISTINCT t - t % {width} AS begun FROM {_below(table)} "  # noqa: S608
        f"WHERE t >= {begin} AND t < {end} ORDER BY begun"
    )


def _rooms_between(table: Table, begin: int, end: int) -> str:
    return f"SELECT DISTINCT room FROM {_below(table)} WHERE t >= {begin} AND t < {end}"  # noqa: S608 - names and numbers


def _below(table: Table) -> str:
    return "minutes" if table is HOURS else "hours"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
