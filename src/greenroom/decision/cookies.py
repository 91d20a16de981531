"""Writes the ticket cookie, and finds all of its values in a request."""

from collections.abc import Set
from functools import lru_cache
from time import gmtime

from greenroom.model.room import Room
from greenroom.request.cookie_scope import PATH_MAX, cookie_scope, crosses_sites

CANDIDATES_MAX = 32
"""Opened cookies of one name. A neighbour under the same domain can set more to hide the real one;
browsers send its cookies all on one side of it, so the first and last half count.
"""

VALUE_MAX = 512
"""Longer values are skipped: a sealed ticket is 108 characters."""

TAILS_MAX = 4096
"""Cached attribute strings of the current second, one per age: at most 1800 in honest use."""

HEADERS_CACHED, HEADER_CACHED_MAX = 2_048, 1_024
"""At most 4 MB."""

PREFIXES_MAX = 16

SESSION_COOKIE, DEVICE_COOKIE, OIDC_COOKIE = (
    "greenroom_session",
    "greenroom_device",
    "greenroom_oidc",
)
HOST_PREFIX = "__Host-"
DASHBOARD_COOKIES = frozenset(
    (prefix + name).encode()
    for name in (SESSION_COOKIE, DEVICE_COOKIE, OIDC_COOKIE)
    for prefix in ("", HOST_PREFIX)
)
"""Cookies ignore ports, so browsers send them to the same host's visitor listener."""

_SPACES_MAX = 8
_SAME_SITE = {"none": b"None", "lax": b"Lax", "strict": b"Strict"}
_DAYS = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS = (
    b"Jan",
    b"Feb",
    b"Mar",
    b"Apr",
    b"May",
    b"Jun",
    b"Jul",
    b"Aug",
    b"Sep",
    b"Oct",
    b"Nov",
    b"Dec",
)


class CookieWriter:
    __slots__ = ("_attributes", "_name", "_second", "_tails", "crosses_sites")

    def __init__(self, room: Room, https: bool, name: str = "", prefix: str = "") -> None:
        """`name`: of another cookie than the ticket. `prefix`: the path that a proxy took off the
        front.
        """
        self._name = (name or room.cookie_name).encode() + b"="
        self.crosses_sites = crosses_sites(room, https)
        self._attributes = _attributes(room, https, self.crosses_sites, prefix)
        self._second = 0
        self._tails: dict[int, bytes] = {}

    def set(self, sealed: bytes, max_age_s: int, now_ms: int) -> bytes:
        second = now_ms // 1000
        tail = self._tails.get(max_age_s) if second == self._second else None
        if tail is None:
            if second != self._second or len(self._tails) > TAILS_MAX:
                self._second, self._tails = second, {}
            tail = b"%b; Max-Age=%d; Expires=%b" % (
                self._attributes,
                max_age_s,
                http_date(second + max_age_s),
            )
            self._tails[max_age_s] = tail
        return self._name + sealed + tail

    def expire(self) -> bytes:
        return self._name + self._attributes + b"; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT"


class TicketCookies:
    __slots__ = ("_below", "_http", "_https", "_make")

    def __init__(self, room: Room, always_use_https: bool, name: str = "") -> None:
        self._https = CookieWriter(room, True, name)
        self._http = self._https if always_use_https else CookieWriter(room, False, name)
        self._make = (room, always_use_https, name)
        self._below: dict[tuple[str, str], CookieWriter] = {}

    def of(self, scheme: str, prefix: str = "") -> CookieWriter:
        if prefix:
            return self._of_prefix(scheme, prefix)
        return self._https if scheme == "https" else self._http

    def _of_prefix(self, scheme: str, prefix: str) -> CookieWriter:
        writer = self._below.get((scheme, prefix))
        if writer is None:
            if len(self._below) >= PREFIXES_MAX:
                self._below.clear()
            room, always_use_https, name = self._make
            https = always_use_https or scheme == "https"
            writer = self._below[scheme, prefix] = CookieWriter(room, https, name, prefix)
        return writer


def _attributes(room: Room, https: bool, crosses: bool, prefix: str) -> bytes:
    wanted = room.cookie_attributes
    scope = cookie_scope(room.routes, room.case_insensitive_paths)
    samesite = "none" if crosses else "lax" if wanted.samesite == "auto" else wanted.samesite
    # SameSite=None without Secure is dropped by every browser, and the visitor would wait for ever.
    secure = crosses or wanted.secure == "always" or (wanted.secure == "auto" and https)
    parts = [b"; Domain=" + scope.domain.encode()] if scope.domain else []
    path = prefix + scope.path if scope.path != "/" else prefix or "/"
    if len(path) > PATH_MAX:
        path = prefix
    parts += [b"; Path=" + path.encode(), b"; HttpOnly"]
    if secure:
        parts.append(b"; Secure")
    parts.append(b"; SameSite=" + _SAME_SITE[samesite])
    if samesite == "none":
        parts.append(b"; Partitioned")
    return b"".join(parts)


def ticket_values(headers: tuple[tuple[bytes, bytes], ...], name: bytes) -> list[bytes]:
    found = [
        value
        for header, line in headers
        if header == b"cookie"
        for value in _values(line, name + b"=")
    ]
    return found if len(found) <= CANDIDATES_MAX else _both_ends(found)


def values_in(header: bytes, name: bytes) -> list[bytes]:
    """In the order sent; at most CANDIDATES_MAX, from both ends, none longer than VALUE_MAX."""
    wanted = name + b"="
    before, _, behind = header.partition(wanted)
    if (
        behind and (not before or before[-2:] == b"; ") and wanted not in behind
    ):  # it comes once, as nearly always
        item = behind.partition(b";")[0].strip(b" \t")
        return [item] if len(item) <= VALUE_MAX else []
    found = _values(header, wanted)
    return found if len(found) <= CANDIDATES_MAX else _both_ends(found)


def _values(header: bytes, wanted: bytes) -> list[bytes]:
    found: list[bytes] = []
    at, size = header.find(wanted), len(wanted)
    while at >= 0:
        start = at + size
        if at == 0 or (at > 1 and header[at - 2 : at] == b"; ") or _begins_pair(header, at):
            end = header.find(b";", start)
            item = (header[start:] if end < 0 else header[start:end]).strip(b" \t")
            if len(item) <= VALUE_MAX:
                found.append(item)
        at = header.find(wanted, start)
    return found


def _both_ends(found: list[bytes]) -> list[bytes]:
    half = CANDIDATES_MAX // 2
    return found[:half] + found[-half:]


def _begins_pair(value: bytes, at: int) -> bool:
    """False inside `x__cfwaitingroom=` or a value with the name in it."""
    before = value[max(0, at - _SPACES_MAX) : at].rstrip(b" \t")
    return before.endswith(b";") or (not before and at < _SPACES_MAX)


def http_date(second: int) -> bytes:
    """RFC 9110, 5.6.7."""
    day, rest = divmod(second, 86_400)
    return b"%b %02d:%02d:%02d GMT" % (_date(day), rest // 3600, rest // 60 % 60, rest % 60)


@lru_cache(maxsize=8)
def _date(day: int) -> bytes:
    at = gmtime(day * 86_400)
    return b"%b, %02d %b %d" % (_DAYS[at.tm_wday], at.tm_mday, _MONTHS[at.tm_mon - 1], at.tm_year)


def without_cookies(value: bytes, own: Set[bytes]) -> bytes:
    """The rest stays byte for byte."""
    return _cached(value, own) if len(value) <= HEADER_CACHED_MAX else _without(value, own)


def _without(value: bytes, own: Set[bytes]) -> bytes:
    parts = value.split(b";")
    kept = [part for part in parts if part.partition(b"=")[0].strip() not in own]
    return value if len(kept) == len(parts) else b";".join(kept).strip()


_cached = lru_cache(maxsize=HEADERS_CACHED)(_without)
