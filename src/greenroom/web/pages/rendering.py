"""Templates: one Jinja environment that escapes everything, with filters for numbers and times."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from greenroom.model.fields import plural, with_unit
from greenroom.web.time_format import milliseconds, plain_moment

PATHS = {
    "rooms": "M4 20V5a1 1 0 0 1 1-1h9a1 1 0 0 1 1 1v15M2 20h20M15 8h4v12M11 12v1",
    "live": "M3 12h4l3-8 4 16 3-8h4",
    "events": "M4 6h16v14H4zM4 10h16M8 3v5M16 3v5",
    "analytics": "M4 20V10M10 20V4M16 20v-7M21 20H3",
    "rules": "M4 6h16M7 12h10M10 18h4",
    "pages": "M4 4h16v16H4zM4 9h16M9 9v11",
    "health": "M12 20s-8-5-8-11a4.500 4.500 0 0 1 8-2.800A4.500 4.500 0 0 1 20 9c0 6-8 11-8 11z",
    "bell": "M6 17V11a6 6 0 0 1 12 0v6l2 1H4zM10 21h4",
    "explain": "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5",
    "audit": "M6 3h9l4 4v14H6zM9 12h7M9 16h7",
    "token": "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l9-9M16 7l3 3",
    "accounts": "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4 21c0-4 4-6 8-6s8 2 8 6",
    "problems": "M12 4L2 20h20zM12 10v4M12 17v.5",
    "processes": "M4 4h16v6H4zM4 14h16v6H4zM8 7h.5M8 17h.5",
    "keys": "M5 11h14v10H5zM8 11V8a4 4 0 0 1 8 0v3",
    "transfer": "M7 4v16M7 20l-4-4M7 20l4-4M17 20V4M17 4l-4 4M17 4l4 4",
    "help": "M12 6c-2-2-5-2-8-2v14c3 0 6 0 8 2 2-2 5-2 8-2V4c-3 0-6 0-8 2zM12 6v14",
    "about": "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v6M12 7.500v.5",
    "zones": "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
    "menu": "M4 7h16M4 12h16M4 17h16",
    "theme": "M12 3a9 9 0 1 0 9 9c-6 2-11-3-9-9z",
    "plus": "M12 5v14M5 12h14",
    "check": "M5 12l5 5L20 7",
    "out": "M14 4h6v16h-6M4 12h11M11 8l4 4-4 4",
}


def icon(name: str) -> Markup:
    picture = '<svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false"><path d="{}"/></svg>'
    return Markup(picture).format(PATHS[name])  # noqa: S704  our own text


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
        return with_unit(whole, "seconds")
    minutes = -(-whole // 60)
    if minutes < 120:
        return f"{minutes} minutes"
    if minutes >= 2_880:
        return f"{round(minutes / 1_440)} days"
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
    """Unknown names are errors. Template names are unique."""
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
        "plural": plural,
        "duration": duration,
        "moment": _moment,
        "iso": plain_moment,
        "unix_ms": milliseconds,
    }
    made.globals |= {"icon": icon, "share": share, **shared}
    return made
