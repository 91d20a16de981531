"""Origins (scheme, host and port) whose scripts may call what a room covers, as browsers send them."""

import re
from collections.abc import Sequence

from greenroom.errors import Problem

CORS_ORIGINS_MAX = 20

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
CORS_ORIGIN = rf"[Hh][Tt][Tt][Pp][Ss]?://(?:{_LABEL}\.)*{_LABEL}(?::[0-9]{{1,5}})?/?"
"""No `*`, because answers are for requests with cookies; no `null`, which pages of every site can
send.
"""

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


def cors_origin_problems(pointer: str, origins: Sequence[object]) -> list[Problem]:
    problems, seen = [], set()
    for index, origin in enumerate(origins):
        normal = normal_origin(origin) if isinstance(origin, str) else ""
        if not normal:
            allowed = (
                "an origin such as https://www.example.com or http://localhost:3000, without a"
                " path; not * and not null"
            )
            problems.append(
                Problem(f"{pointer}[{index}]", f"must be {allowed}, not {str(origin)[:60]!r}")
            )
        elif normal in seen:
            problems.append(Problem(f"{pointer}[{index}]", f"{normal} is listed twice"))
        seen.add(normal)
    return problems
