"""Texts of the built-in page: one file per language, with its formats of numbers and times."""

import re
import tomllib
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

FALLBACK = "en-US"

HOUR, DAY = 60, 1_440
COARSE_MINUTES = 5

SLIGHTEST = 1_000

_FORBIDDEN = re.compile(r'[<>&"\\\x00-\x1f\x7f]')


def _slavic(n: int) -> str:
    if n % 10 == 1 and n % 100 != 11:
        return "one"
    return "few" if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else "many"


def _arabic(n: int) -> str:
    if n in (1, 2):
        return "one" if n == 1 else "two"
    return "few" if 3 <= n % 100 <= 10 else "many"


def _lithuanian(n: int) -> str:
    if n % 10 == 0 or 11 <= n % 100 <= 19:
        return "many"
    return "one" if n % 10 == 1 else "few"


PLURALS: dict[str, Callable[[int], str]] = {
    "other": lambda _: "other",
    "one-other": lambda n: "one" if n == 1 else "other",
    "one-two-other": lambda n: {1: "one", 2: "two"}.get(n, "other"),
    "one-few-many": lambda n: "one" if n == 1 else "few" if n in (2, 3, 4) else "many",
    "polish": lambda n: "one" if n == 1 else "many" if _slavic(n) == "one" else _slavic(n),
    "slavic": _slavic,
    "slovenian": lambda n: {1: "one", 2: "two", 3: "few", 4: "few"}.get(n % 100, "many"),
    "lithuanian": _lithuanian,
    "latvian": lambda n: (
        "zero" if n % 10 == 0 or 11 <= n % 100 <= 19 else "one" if n % 10 == 1 else "other"
    ),
    "romanian": lambda n: "one" if n == 1 else "few" if n == 0 or 1 <= n % 100 <= 19 else "many",
    "arabic": _arabic,
}
"""CLDR, for whole numbers from 1 on."""

GROUPINGS: dict[str, Callable[[int], str]] = {
    "thousands": lambda n: f"{n:,}",
    "thousands-from-five-digits": lambda n: f"{n:,}" if n >= 10_000 else str(n),
    "lakh": lambda n: (
        re.sub(r"(?<=\d)(?=(\d\d)+,)", ",", f"{n // 1000},{n % 1000:03}") if n >= 1000 else str(n)
    ),
}
"""1,234,567; 1234 but 12,345; 12,34,567. The language's own sign replaces the comma."""


def available() -> tuple[str, ...]:
    folder = resources.files(__package__) / "languages"
    return tuple(
        sorted(
            file.name.removesuffix(".toml")
            for file in folder.iterdir()
            if file.name.endswith(".toml")
        )
    )


@lru_cache(64)
def language(tag: str) -> "Language":
    known = tag if tag in available() else FALLBACK
    source = (resources.files(__package__) / "languages" / f"{known}.toml").read_text("utf-8")
    return Language(tomllib.loads(source))


class Language:
    def __init__(self, words: dict[str, Any]) -> None:
        """Raises ValueError when a text contains a character that would have to be escaped."""
        _refuse_markup(words)
        self.tag: str = words["tag"]
        self.dir: str = words["dir"]
        self.labels: dict[str, str] = words["labels"]
        self.script: dict[str, str] = words["script"]
        self.views: dict[str, dict[str, str]] = words["views"]
        self.alone: dict[str, Any] = words["alone"]
        self.changes: dict[str, str] = words["changes"]
        self.offers: dict[str, str] = words["offers"]
        self.move: dict[str, str] = words["move"]
        self.calendar: dict[str, str] = words["calendar"]
        self.call: dict[str, str] = words["call"]
        self.session: dict[str, str] = words["session"]
        self._time: dict[str, Any] = words["time"]
        self._chance: dict[str, str] = words["chance"]
        self.draw: dict[str, str] = words["draw"]
        self.clock: str = words["time"]["clock"]
        self._thousands: str = words["thousands"]
        self._grouped = GROUPINGS[words["grouping"]]
        self._digits = str.maketrans("0123456789", words["digits"])
        self._own_digits = words["digits"] != "0123456789"
        self._plural = PLURALS[words["plural"]]

    def number(self, number: int) -> str:
        said = self._grouped(number).replace(",", self._thousands)
        return said.translate(self._digits) if self._own_digits else said

    def time(self, minutes: int) -> str:
        """`1 minute`, `2 hours 5 minutes`, `more than a day`; 0 is `any moment now`."""
        if minutes <= 0:
            return str(self._time["now"])
        if minutes < HOUR:
            return self._counted("minutes", minutes)
        coarse = -(-minutes // COARSE_MINUTES) * COARSE_MINUTES
        if coarse > DAY:
            return str(self._time["over_a_day"])
        hours = self._counted("hours", coarse // HOUR)
        rest = self._counted("minutes", coarse % HOUR)
        return (
            str(self._time["hours_minutes"]).format(hours=hours, minutes=rest)
            if coarse % HOUR
            else hours
        )

    def wait(self, minutes: int) -> str:
        """`about 12 minutes`."""
        said = self.time(minutes)
        return said if minutes <= 0 or minutes > DAY else str(self._time["about"]).format(time=said)

    def at_most(self, minutes: int, most: int) -> str:
        """`about 12 minutes, at most 18`; without the end when it adds nothing."""
        if minutes <= 0 or not minutes < most <= DAY or self.time(minutes) == self.time(most):
            return self.wait(minutes)
        pattern = self._time["at_most_minutes" if most < HOUR else "at_most"]
        return str(pattern).format(
            about=self.wait(minutes), n=self.number(most), time=self.time(most)
        )

    def at_least(self, minutes: int) -> str:
        """`at least 12 minutes`; for 0, as for an unknown estimate."""
        return (
            str(self._time["at_least"]).format(time=self.time(minutes))
            if 0 < minutes <= DAY
            else self.time(minutes)
            if minutes
            else self.unknown
        )

    def span(self, low: int, high: int) -> str:
        """`5 to 15 minutes`, `45 minutes to 2 hours`; one time when both sound the same."""
        if self.time(low) == self.time(high) or low <= 0:
            return self.wait(high)
        first = self.number(low) if high < HOUR else self.time(low)
        return str(self._time["range"]).format(low=first, high=self.time(high))

    def chance(self, chance: float) -> str:
        """`about 1 in 12`; empty for none."""
        if chance <= 0:
            return ""
        n = round(1 / chance)
        if n > SLIGHTEST:
            return self._chance["slight"]
        return self._chance["of"].format(n=self.number(n)) if n > 1 else self._chance["certain"]

    def drawn(self, place: int, total: int) -> str:
        """`17 of 1,234`."""
        return self.draw["place"].format(n=self.number(place), total=self.number(total))

    @property
    def unknown(self) -> str:
        return str(self._time["unknown"])

    def _counted(self, unit: str, number: int) -> str:
        return str(self._time[unit][self._plural(number)]).format(n=self.number(number))


def _refuse_markup(words: Any) -> None:
    for word in words.values():
        if isinstance(word, dict):
            _refuse_markup(word)
        elif _FORBIDDEN.search(word):
            raise ValueError(
                f"a text of a language file contains a character that is not allowed: {word!r}"
            )
