"""Reads the first line of a request strictly: method, target, version, with one blank between."""

import re
from functools import lru_cache

import msgspec

from greenroom.core.canonical import Refusal, Target, canonical_target
from greenroom.decision.arrival import refused_method

LINES_REMEMBERED, LINE_REMEMBERED_MAX = 4_096, 512
"""Request lines whose meaning is remembered, and their longest, so that what strangers can make us remember stays below 8 MB."""

_METHODS = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")}
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_MINORS = {b"HTTP/1.1": 1, b"HTTP/1.0": 0}


class RequestLine(msgspec.Struct, frozen=True, gc=False):
    """A request line, understood. `target` is None for one that is no path: what it means hangs on the lines behind it."""

    method: bytes
    name: str
    raw: bytes
    target: Target | None
    minor: int


def _read(line: bytes) -> RequestLine | Refusal:
    parts = line.split(b" ")
    if len(parts) != 3:
        return Refusal(400, "the request line must be: method, blank, target, blank, version")
    method, target, version = parts
    minor = _MINORS.get(version)
    if minor is None:
        known = _VERSION.fullmatch(version)
        return Refusal(505, "only HTTP/1.1 and HTTP/1.0 are supported") if known else Refusal(400, "the HTTP version is malformed")
    if method not in _METHODS:
        wrong = refused_method(method)
        if wrong:
            return wrong
    canonical = canonical_target(target) if target[:1] == b"/" else None
    if isinstance(canonical, Refusal):
        return canonical
    return RequestLine(method, _METHODS.get(method) or method.decode("ascii"), target, canonical, minor)


_remembered = lru_cache(maxsize=LINES_REMEMBERED)(_read)


def read_request_line(line: bytes) -> RequestLine | Refusal:
    """The facts of a request line without its CRLF, or a refusal (400, 405, 414 or 505). Never raises."""
    return _remembered(line) if len(line) <= LINE_REMEMBERED_MAX else _read(line)
