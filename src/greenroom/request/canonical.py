"""Reads a request target into the one canonical form that is matched, gated and forwarded, or
refuses it: a request could bypass a room when greenroom and the origin read it differently. Targets
that every server reads alike are normalised; those that servers are known to read differently are
refused. The law: canonical(canonical(x)) == canonical(x), and a canonical target is returned
unchanged. Tables: docs/explanation/request-canonical-form.md.
"""

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import msgspec

TARGET_MAX = 8_192
"""Bytes: the default of nginx and most origins."""

TARGETS_CACHED = 4_096

CACHED_MAX = 512
"""At most 8 MB."""


class Refusal(msgspec.Struct, frozen=True):
    """The reason is safe to show, it repeats no input."""

    status: int
    reason: str


class Target(msgspec.Struct, frozen=True):
    """`raw`: as the origin gets it. `readings`: empty when every program reads the path alike, else
    every reading, `path` first. `otherwise` counts where readings lead to different rooms or rules:
    the one canonical form, or a refusal. None: then the room of any reading counts.
    """

    path: str
    query: str
    raw: bytes
    readings: tuple[str, ...] = ()
    otherwise: "Target | Refusal | None" = None


# characters that need no encoding in a path, without the dot, which can form a dot segment
_LITERAL = r"A-Za-z0-9_~!$&'()*+,=:@-"
_CANONICAL = re.compile(rf"(?:/[{_LITERAL}][.{_LITERAL}]*)+/?|/".encode())
_QUERY = re.compile(rb"[!-\"$-~]*")
_NEVER_RAW = re.compile(rb"[^!-\"$-\[\]-~]")  # controls, blank, `#`, backslash, DEL, non-ASCII
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ANY_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")
_TWICE = re.compile(rb"%25([0-9A-Fa-f]{2})")
_SEGMENT_END = re.compile(rb"/+")
_SESSION_ID = re.compile(rb"(?<!\.);jsessionid=[A-Za-z0-9._!~-]*\Z")

_DOT_ABOVE = "\u0307"
"""The end of `İ` in lower case in some languages and programs only."""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_CONTROLS = frozenset([*range(0x20), 0x7F])
_TO_ESCAPE = re.compile(rb"[\"<>\[\]^`{|}]")
_NEVER_ESCAPED = {
    ord("/"): "slash",
    ord("\\"): "backslash",
    ord(";"): "semicolon",
    **dict.fromkeys(_CONTROLS, "control character"),
}
_NEVER_TWICE = _UNRESERVED | frozenset(_NEVER_ESCAPED) | {ord("%")}
_MATCHED_ALIKE = re.compile(r"%(2[146789ABC]|3[AD]|40)")


def canonical_target(raw: bytes) -> Target | Refusal:
    """A refusal is 400, or 414 beyond TARGET_MAX. A bare `?` is dropped."""
    return _cached(raw) if len(raw) <= CACHED_MAX else _read(raw)


def _read(raw: bytes) -> Target | Refusal:
    if len(raw) > TARGET_MAX:
        return Refusal(414, f"the request target is longer than {TARGET_MAX} bytes")
    path, _, query = raw.partition(b"?")
    if not _QUERY.fullmatch(query):
        return Refusal(400, "the query contains a control character, blank, # or non-ASCII byte")
    canonical = path if _CANONICAL.fullmatch(path) else _canonical_path(path)
    if isinstance(canonical, Refusal):
        return canonical
    return Target(
        canonical.decode("ascii"),
        query.decode("ascii"),
        canonical + b"?" + query if query else canonical,
    )


_cached = lru_cache(maxsize=TARGETS_CACHED)(_read)


def matching_path(path: str) -> str:
    """For comparing prefixes: decodes punctuation that RFC 3986 lets stand raw. It is forwarded as
    sent, because S3 tells `+` from `%2B`; but `/c%2B%2B` must not bypass a room at `/c++`.
    """
    return _MATCHED_ALIKE.sub(lambda found: chr(int(found[1], 16)), path) if "%" in path else path


def folded_path(path: str) -> str:
    """As coarsely as any application: `İ` is `i` for some, `ß` is `SS`. No spelling may get around
    a room.
    """
    if "%" not in path:
        return path.lower()  # plain ASCII
    return (
        unquote_to_bytes(path).decode("utf-8", "replace").upper().casefold().replace(_DOT_ABOVE, "")
    )


def _canonical_path(raw: bytes) -> bytes | Refusal:
    if not raw.startswith(b"/"):
        return Refusal(400, "the request target must begin with /")
    if _NEVER_RAW.search(raw):
        return Refusal(
            400, "the path contains a control character, blank, #, backslash or non-ASCII byte"
        )
    path = _TO_ESCAPE.sub(lambda found: b"%%%02X" % found[0][0], raw)
    if b"%" in path:
        if _BROKEN_ESCAPE.search(path):
            return Refusal(400, "the path contains an incomplete percent-escape")
        path = _ANY_ESCAPE.sub(normal_escape, path)
        wrong = _escape_problem(path)
        if wrong:
            return Refusal(400, wrong)
    path = _SESSION_ID.sub(b"", path)
    if b";" in path:
        return Refusal(400, "the path contains a path parameter (;)")
    return _without_dots(path)


def normal_escape(found: re.Match[bytes]) -> bytes:
    value = int(found[0][1:], 16)
    return bytes((value,)) if value in _UNRESERVED else found[0].upper()


def _escape_problem(path: bytes) -> str:
    """Checked after decoding unreserved characters, which could hide it."""
    for escape in _ESCAPE.findall(path):
        wrong = _NEVER_ESCAPED.get(int(escape, 16))
        if wrong:
            return f"the path contains an encoded {wrong}"
    if any(int(escape, 16) in _NEVER_TWICE for escape in _TWICE.findall(path)):
        return "the path contains a doubly encoded character"
    return text_problem(path)


def text_problem(path: bytes) -> str:
    try:
        text = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        return "the path is not valid UTF-8"
    return (
        "the path contains an encoded control character"
        if any("\x80" <= char <= "\x9f" for char in text)
        else ""
    )


def _without_dots(path: bytes) -> bytes | Refusal:
    """RFC 3986 lets `..` remove an empty segment, servers that merge slashes first let it remove
    the one before: refused.
    """
    segments = path.split(b"/")[1:]
    kept: list[bytes] = []
    for segment in segments:
        if segment == b"..":
            if not kept:
                return Refusal(400, "the path leaves the root")
            if kept.pop() == b"":
                return Refusal(400, "the path contains .. behind an empty segment")
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")
    return _SEGMENT_END.sub(b"/", b"/" + b"/".join(kept))
