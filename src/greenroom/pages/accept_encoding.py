import re
from functools import lru_cache

HEADER_MAX = 256

HEADERS_REMEMBERED = 1_024
"""Half a megabyte."""

_GZIP = re.compile(
    rb"(?:\A|,)[ \t]*(?:x-)?gzip[ \t]*(?:;[ \t]*q=([01](?:\.[0-9]{0,3})?)[ \t]*)?(?:,|\Z)",
    re.IGNORECASE,
)


def takes_gzip(header: bytes | None) -> bool:
    """A `*` does not count: programs that never unpack anything send it."""
    return header is not None and _named(header[:HEADER_MAX])


@lru_cache(HEADERS_REMEMBERED)
def _named(header: bytes) -> bool:
    found = _GZIP.search(header)
    return found is not None and float(found[1] or 1) > 0
