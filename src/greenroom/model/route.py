"""The hosts and paths that a room covers."""

import re
from dataclasses import dataclass
from typing import Any

from greenroom.errors import Problem
from greenroom.model.fields import spec

HOST = (
    r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)


@dataclass(frozen=True, slots=True)
class Route:
    """A path prefix covers whole segments: `/shop` covers `/shop/x`, not `/shopping`."""

    host: str = spec("host name that is covered")
    path: str = spec("path prefix that is covered", "/")


def host_problems(pointer: str, host: Any) -> list[Problem]:
    """Lower-case name, no scheme or port.

    Extensions: `*.` before a name covers every host below it (not the name itself); a lone `*`
    covers every host.
    """
    if host == "*" or (isinstance(host, str) and re.fullmatch(HOST, host.removeprefix("*."))):
        return []
    allowed = (
        "a host name in lower case without scheme, port and path: shop.example.com, *.example.com"
        " (every host below it), in a file also *"
    )
    return [Problem(pointer, f"must be {allowed}, not {str(host)[:60]!r}")]


def path_problems(pointer: str, path: Any) -> list[Problem]:
    """Absolute, printable ASCII in canonical form, no query, no wildcard."""
    if not isinstance(path, str) or not path.startswith("/"):
        return [Problem(pointer, "must begin with /")]
    if re.search(r"[?#*;\\\s]|[^\x21-\x7e]", path):
        return [
            Problem(
                pointer,
                "must not contain ?, #, *, ;, backslash, blanks or non-ASCII characters"
                " (percent-encode them)",
            )
        ]
    if "//" in path or re.search(r"/\.{1,2}(/|$)", path):
        return [Problem(pointer, "must not contain empty or dot segments")]
    return []
