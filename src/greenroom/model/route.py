"""The hosts and paths that a room covers, its cookie there, and the origins of its scripts."""

import re
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class CookieAttributes:
    samesite: str = spec(
        "SameSite of the cookie", "auto", choices=("auto", "lax", "none", "strict")
    )
    secure: str = spec("Secure of the cookie", "auto", choices=("auto", "always", "never"))


_READ_IN_TWO_WAYS = frozenset("ßς\u200c\u200d")


def as_host(written: str) -> str:
    """In lower case, other letters as in DNS (`xn--`); unchanged where the standards disagree."""
    if written.isascii():
        return written.lower()
    try:
        coded = written.encode("idna").decode()
    except UnicodeError:
        return written
    return written if _READ_IN_TWO_WAYS & set(written) else coded.lower()


def host_problems(pointer: str, host: Any) -> list[Problem]:
    """Extensions: `*.` before a name covers every host below it (not the name itself); a lone `*`
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
        return [Problem(pointer, f"must begin with /, not {str(path)[:60]!r}")]
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


PRIORITY_PATHS_MAX = 20


def is_below(path: str, top: str) -> bool:
    """Whether a canonical path is `top` or below it."""
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def room_route_problems(values: Mapping[str, Any], wrong: set[str]) -> list[Problem]:
    problems = []
    if "host" not in wrong and "host" in values:
        problems += host_problems("host", values["host"])
    if "path" not in wrong and "path" in values:
        problems += path_problems("path", values["path"])
    if "priority_paths" not in wrong:
        for index, path in enumerate(values.get("priority_paths", ())):
            problems += path_problems(f"priority_paths[{index}]", path)
    if "additional_routes" in wrong:
        return problems
    for index, route in enumerate(values.get("additional_routes", ())):
        at = f"additional_routes[{index}]"
        if not isinstance(route, Route):
            continue
        problems += host_problems(f"{at}.host", route.host) + path_problems(
            f"{at}.path", route.path
        )
    return problems


def cookie_problems(values: Mapping[str, Any], wrong: set[str]) -> list[Problem]:
    problems = []
    attributes = values.get("cookie_attributes")
    if isinstance(attributes, CookieAttributes) and (
        (attributes.samesite, attributes.secure) == ("none", "never")
    ):
        problems.append(
            Problem(
                "cookie_attributes.secure",
                "must not be never with samesite none: browsers drop such a cookie",
            )
        )
    if (
        values.get("additional_routes")
        and not values.get("cookie_suffix")
        and "cookie_suffix" not in wrong
    ):
        problems.append(Problem("cookie_suffix", "is required when additional_routes is not empty"))
    return problems


CORS_ORIGINS_MAX = 20

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
CORS_ORIGIN = rf"[Hh][Tt][Tt][Pp][Ss]?://(?:{_LABEL}\.)*{_LABEL}(?::[0-9]{{1,5}})?/?"
"""Not `*`, because requests have cookies; not `null`, which pages of every site can send."""

_PARTS = re.compile(r"(https?)://([a-z0-9.-]{1,253})(?::([0-9]+))?/?")
_USUAL_PORTS = {"http": 80, "https": 443}


def normal_origin(written: str) -> str:
    """Lower case, without the usual port and trailing slash. Empty for no origin."""
    found = _PARTS.fullmatch(written.lower()) if re.fullmatch(CORS_ORIGIN, written) else None
    if found is None:
        return ""
    scheme, host = found[1], found[2]
    port = int(found[3] or _USUAL_PORTS[scheme])
    if not 0 < port < 65_536:
        return ""
    return f"{scheme}://{host}" if port == _USUAL_PORTS[scheme] else f"{scheme}://{host}:{port}"


def cors_origin_problems(origins: Sequence[object]) -> list[Problem]:
    problems, seen = [], set()
    for index, origin in enumerate(origins):
        normal = normal_origin(origin) if isinstance(origin, str) else ""
        if not normal:
            allowed = (
                "an origin such as https://www.example.com or http://localhost:3000, without a"
                " path; not * and not null"
            )
            problems.append(
                Problem(f"cors_origins[{index}]", f"must be {allowed}, not {str(origin)[:60]!r}")
            )
        elif normal in seen:
            problems.append(Problem(f"cors_origins[{index}]", f"{normal} is listed twice"))
        seen.add(normal)
    return problems
