"""Templates: one Jinja environment that escapes everything, with filters for numbers and times."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from greenroom.web.pages.icons import icon
from greenroom.web.time_format import milliseconds, plain_moment

THEME_COOKIE, ZONE_COOKIE = "greenroom_theme", "greenroom_tz"
THEMES = ("auto", "light", "dark")

GROUPING = {
    "de": ".",
    "es": ".",
    "it": ".",
    "nl": ".",
    "pt": ".",
    "tr": ".",
    "id": ".",
    "da": ".",
    "fr": "\u202f",
    "ru": "\u00a0",
}


class Viewer(NamedTuple):
    theme: str = "auto"
    zone: str = "UTC"
    language: str = "en"

    @classmethod
    def of(cls, headers: Mapping[str, str], cookies: Mapping[str, str]) -> "Viewer":
        theme = cookies.get(THEME_COOKIE, "")
        zone = cookies.get(ZONE_COOKIE, "").replace("%2F", "/")
        language = headers.get("accept-language", "en")[:2].lower()
        return cls(
            theme if theme in THEMES else "auto",
            zone if _time_zone(zone) else "UTC",
            language if language.isalpha() else "en",
        )


@cache
def _known_zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones()) | {"UTC"}


@cache
def _loaded_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError):
        return None


def _time_zone(name: str) -> ZoneInfo | None:
    return _loaded_zone(name) if name in _known_zones() else None


def grouped(value: float, language: str = "en") -> str:
    if not math.isfinite(value):
        return "unknown"
    return f"{round(value):,}".replace(",", GROUPING.get(language, ","))


def duration(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} second{'' if whole == 1 else 's'}"
    minutes = -(-whole // 60)
    if minutes < 120:
        return f"{minutes} minutes"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


@pass_context
def _number(context: Context, value: float | None) -> str:
    return "unknown" if value is None else grouped(value, context["viewer"].language)


def local_time(unix_ms: int, zone: str, *, seconds: bool = False) -> str:
    at = datetime.fromtimestamp(unix_ms / 1000, _time_zone(zone) or UTC)
    return f"{at:%Y-%m-%d %H:%M:%S %Z}" if seconds else f"{at:%Y-%m-%d %H:%M %Z}"


@pass_context
def _moment(context: Context, unix_ms: int | None, *, seconds: bool = False) -> str:
    return (
        "never" if unix_ms is None else local_time(unix_ms, context["viewer"].zone, seconds=seconds)
    )


def share(value: float, limit: float) -> int:
    return max(0, min(100, round(100 * value / limit))) if limit > 0 else 0


def environment(packages: Sequence[str], shared: Mapping[str, Any]) -> Environment:
    """Escapes everything; an unknown name is an error. Names of templates are unique."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(one) for one in (__package__, *packages)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "number": _number,
        "duration": duration,
        "moment": _moment,
        "iso": plain_moment,
        "unix_ms": milliseconds,
    }
    made.globals |= {"icon": icon, "share": share, **shared}
    return made
