"""Reads the first line of a request strictly: method, target, version, one blank between."""

import re
from functools import lru_cache

import msgspec

from greenroom.request.arrival import refused_method
from greenroom.request.canonical import Refusal, Target, canonical_target
from greenroom.request.path_readings import has_readings

LINES_CACHED, LINE_CACHED_MAX = 4_096, 512
"""Cached request lines, at most 8 MB, and the longest."""

_METHODS = {
    name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
}
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_MINORS = {b"HTTP/1.1": 1, b"HTTP/1.0": 0}


class RequestLine(msgspec.Struct, frozen=True, gc=False):
    """`target` is None when it depends on later lines: it is no path, or paths are read by host.
    `kind`: method and version of a usual method, or empty.
    """

    method: bytes
    name: str
    raw: bytes
    target: Target | None
    minor: int
    kind: bytes = b""


def read_line(line: bytes) -> RequestLine | Refusal:
    """`line` has no CRLF. Refusals are 400, 405, 414 or 505. Never raises."""
    parts = line.split(b" ")
    if len(parts) != 3:
        return Refusal(400, "the request line must be: method, blank, target, blank, version")
    method, target, version = parts
    minor = _MINORS.get(version)
    if minor is None:
        known = _VERSION.fullmatch(version)
        return (
            Refusal(505, "only HTTP/1.1 and HTTP/1.0 are supported")
            if known
            else Refusal(400, "the HTTP version is malformed")
        )
    if method not in _METHODS:
        wrong = refused_method(method)
        if wrong:
            return wrong
    canonical = canonical_target(target) if target[:1] == b"/" else None
    alike = (
        canonical if isinstance(canonical, Target) and not has_readings(target, canonical) else None
    )
    usual = _METHODS.get(method)
    return RequestLine(
        method,
        usual or method.decode("ascii"),
        target,
        alike,
        minor,
        method + version if usual else b"",
    )


cached_line = lru_cache(maxsize=LINES_CACHED)(read_line)
