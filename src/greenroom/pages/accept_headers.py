"""What a browser accepts: languages of the page, and compression."""

import re
from functools import lru_cache

from greenroom.pages.language import available

HEADER_MAX = 256

HEADERS_CACHED = 2_048
"""About 1 MB."""

ENCODINGS_CACHED = 1_024
"""Half a megabyte."""

ASKED_MAX = 16

KNOWN_AS = {
    "no": "nb-NO", "nn": "nb-NO", "fil": "tl-PH", "iw": "he-IL", "in": "id-ID", "sh": "sr-BA",
    "zh-hant": "zh-TW", "zh-hk": "zh-TW", "zh-mo": "zh-TW",
}  # fmt: skip
"""Tags of our languages that begin differently."""

_ITEM = re.compile(
    r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?"
)

_GZIP = re.compile(
    rb"(?:\A|,)[ \t]*(?:x-)?gzip[ \t]*(?:;[ \t]*q=([01](?:\.[0-9]{0,3})?)[ \t]*)?(?:,|\Z)",
    re.IGNORECASE,
)


def asked_for(header: bytes) -> str:
    """Empty when none is ours."""
    return _asked_for(header[:HEADER_MAX])


@lru_cache(HEADERS_CACHED)
def _asked_for(header: bytes) -> str:
    weighed = []
    for index, part in enumerate(header.decode("latin-1").split(",")[:ASKED_MAX]):
        found = _ITEM.fullmatch(part)
        weight = float(found[2] or 1) if found else 0.0
        if found and weight > 0:
            weighed.append((-weight, index, found[1].lower()))
    return next((tag for _, _, asked in sorted(weighed) if (tag := _spoken(asked))), "")


def _spoken(asked: str) -> str:
    """The same tag, else one known by this name, else the first with the same beginning."""
    ours = _ours()
    while asked:
        found = ours.get(asked)
        if found:
            return found
        asked = asked.rpartition("-")[0]
    return ""


@lru_cache(1)
def _ours() -> dict[str, str]:
    first = {tag.partition("-")[0].lower(): tag for tag in reversed(available())}
    return {**first, **{tag.lower(): tag for tag in available()}, **KNOWN_AS}


def takes_gzip(header: bytes | None) -> bool:
    """A `*` does not count: programs that never unpack anything send it."""
    return header is not None and _named(header[:HEADER_MAX])


@lru_cache(ENCODINGS_CACHED)
def _named(header: bytes) -> bool:
    found = _GZIP.search(header)
    return found is not None and float(found[1] or 1) > 0
