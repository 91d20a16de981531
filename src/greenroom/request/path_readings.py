"""Every way to read a path that not every program reads alike. The origin gets the bytes as they
came; the readings are everything that known steps (decode once more, cut parameters, merge slashes,
resolve dots) make of them, in any order and number. A request is covered when ANY reading is, and a
bypass rule holds only when it holds for ALL: so whichever way the origin reads the path, the room
of the page that it finds has been asked.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from greenroom.request.canonical import (
    Refusal,
    Target,
    canonical_target,
    normal_escape,
    text_problem,
)

READINGS_MAX = 16
"""Real paths have two to six."""

PASSED_MAX = 2_048
"""Cloudflare's limit for the path of a room."""

READINGS_CACHED, CACHED_MAX = 1_024, 256
"""At most 8 MB."""


HIDDEN_END = Refusal(400, "the path contains an encoded question mark or #")


class PathPolicy(NamedTuple):
    """`ambiguous`: "refuse", or "auto" and "pass" as in `Target.otherwise`. `merges`, for doubled
    slashes: True, "auto" where the readings differ, False never.
    """

    ambiguous: str = "auto"
    merges: bool | str = "auto"


USUAL = PathPolicy()


class PathPolicies:
    __slots__ = ("_usual", "_zones")

    def __init__(
        self, usual: PathPolicy = USUAL, zones: Mapping[str, PathPolicy] | None = None
    ) -> None:
        """`zones`: by zone name, for that host and all below it."""
        self._usual = usual
        self._zones = dict(zones or {})

    def of(self, host: str) -> PathPolicy:
        while self._zones and host:
            if host in self._zones:
                return self._zones[host]
            host = host.partition(".")[2]
        return self._usual


def read_target(raw: bytes, policy: PathPolicy = USUAL) -> Target | Refusal:
    found = canonical_target(raw)
    otherwise: Target | Refusal = found
    if isinstance(found, Refusal):
        if found.status != 400 or policy.ambiguous == "refuse":
            return found
        judged = policy.ambiguous == "auto"
    elif not has_readings(raw, found):
        return found
    elif b";" in raw.partition(b"?")[0] or _HIDDEN_END.search(found.path):
        if policy.ambiguous == "refuse":
            return found
        judged = policy.ambiguous == "auto"
        if _HIDDEN_END.search(found.path):
            otherwise = HIDDEN_END
    else:
        if policy.merges is True:
            return found
        judged = policy.merges == "auto"
    return (_cached if len(raw) <= CACHED_MAX else _passed)(raw, otherwise if judged else None)


def has_readings(raw: bytes, found: Target) -> bool:
    if b";" in raw or b"//" in raw:
        path = raw.partition(b"?")[0]
        if b";" in path or b"//" in path:
            return True
    return "%" in found.path and _HIDDEN_END.search(found.path) is not None


def _passed(raw: bytes, otherwise: Target | Refusal | None) -> Target | Refusal:
    path, _, query = raw.partition(b"?")
    if _NEVER_IN_QUERY.search(query):
        return Refusal(400, "the query contains a control character, blank or #")
    try:
        said = query.decode("utf-8")
    except UnicodeDecodeError:
        return Refusal(400, "the query is not valid UTF-8")
    tail = b"?" + query if query else b""
    plain = canonical_target(path)
    if isinstance(plain, Target) and not has_readings(path, plain):
        return Target(plain.path, said, plain.raw + tail)
    found = readings(path)
    if isinstance(found, Refusal):
        return found if otherwise is None else otherwise
    return Target(found[0], said, path + tail, found, otherwise)


_cached = lru_cache(maxsize=READINGS_CACHED)(_passed)


def readings(path: bytes) -> tuple[str, ...] | Refusal:
    """The first one is the path as sent (escapes in one spelling)."""
    if len(path) > PASSED_MAX:
        return Refusal(414, f"a path with several readings is longer than {PASSED_MAX} bytes")
    if not path.startswith(b"/"):
        return Refusal(400, "the request target must begin with /")
    if _NEVER_RAW.search(path):
        return Refusal(400, "the path contains a control character, blank, # or backslash")
    if _BROKEN_ESCAPE.search(path):
        return Refusal(400, "the path contains an incomplete percent-escape")
    path = _TO_ESCAPE.sub(lambda found: b"%%%02X" % found[0][0], path)
    first = _ANY_ESCAPE.sub(normal_escape, path)
    seen = {first: None}
    todo = [first]
    while todo:
        reading = todo.pop()
        wrong = _problem(reading)
        if wrong:
            return Refusal(400, wrong)
        for step in _STEPS:
            made = step(reading)
            if made is None:
                return Refusal(400, "the path leaves the root when it is decoded or resolved")
            if made not in seen:
                if len(seen) == READINGS_MAX:
                    return Refusal(400, f"the path can be read in more than {READINGS_MAX} ways")
                seen[made] = None
                todo.append(made)
    return tuple([reading.decode("ascii") for reading in seen])


_NEVER_RAW = re.compile(rb"[\x00-\x20#\\\x7f]")
_TO_ESCAPE = re.compile(rb"[\"<>\[\]^`{|}\x80-\xff]")
_HIDDEN_END = re.compile(r"%(?:25)*(?:3[Ff]|23)")
_END = re.compile(rb"%(?:3F|23)")
_NEVER_IN_QUERY = re.compile(rb"[\x00-\x20#\x7f]")
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ANY_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_HIDDEN = re.compile(rb"%(?:0[0-9A-F]|1[0-9A-F]|7F|5C)")
_STRUCTURE = re.compile(rb"%(2F|3B|25(?=[0-9A-Fa-f]{2}))")
_DECODED = {b"2F": b"/", b"3B": b";", b"25": b"%"}
_SLASHES = re.compile(rb"//+")
_PARAMETERS = re.compile(rb";[^/]*")
_LAST_PARAMETERS = re.compile(rb";[^/]*\Z")


def _problem(reading: bytes) -> str:
    if _HIDDEN.search(reading):
        return "the path contains an encoded control character or backslash"
    return text_problem(reading)


def _decoded(path: bytes) -> bytes:
    if b"%" not in path:
        return path
    once = _STRUCTURE.sub(lambda found: _DECODED[found[1]], path)
    return _ANY_ESCAPE.sub(normal_escape, once)


def _merged(path: bytes) -> bytes:
    return _SLASHES.sub(b"/", path)


def _resolved(path: bytes) -> bytes | None:
    """As RFC 3986 says (an empty segment is one); None when that leaves the root."""
    if b"/." not in path:
        return path
    kept: list[bytes] = []
    segments = path.split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            if not kept:
                return None
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")
    return b"/" + b"/".join(kept)


_STEPS: tuple[Callable[[bytes], bytes | None], ...] = (
    _decoded,
    _merged,
    _resolved,
    lambda path: _PARAMETERS.sub(b"", path),  # of every segment, as servlet containers do
    lambda path: _LAST_PARAMETERS.sub(b"", path),  # of the last one, as RFC 2396 did
    lambda path: path.partition(b";")[0] or b"/",  # everything behind the first one
    lambda path: _END.split(path, maxsplit=1)[0],  # decoded before the query is split off
)
