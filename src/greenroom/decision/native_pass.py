"""Native passes: short-lived proofs that a visitor is active, verified by a proxy alone (proof:
docs/explanation/native-pass.md). hs256 and es256 are JWTs; secure_link is nginx's MD5 in base64url,
a comma and the last valid second.
"""

import hashlib
import hmac
import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable

from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from greenroom.decision.cookies import TicketCookies
from greenroom.model.room import ANY_PASS, Room
from greenroom.model.route import Route
from greenroom.model.visit import Arrival, Outcome
from greenroom.request.routing import route_prefix

COOKIE_NAME = "__greenroom_pass"

SECRET_LEAST = 32
"""32 hexadecimal digits are 128 bits."""

LINK_SECRET = 22
"""132 bits."""

LINK_HOST_MAX = 53
"""End and host stay below 64 bytes, so every step of MD5 contains a part of the secret."""

LEAST_MS = 1_000

PASSES_CACHED = 4_096
"""At most 2 MB."""

_TO_URL = bytes.maketrans(b"+/", b"-_")


class PassKeys:
    """Either key may be empty."""

    __slots__ = ("_key", "_secret")

    def __init__(self, secret: str = "", key: bytes = b"") -> None:
        """`key`: a PEM file's content. Raises ValueError for unusable keys."""
        if secret and (
            len(secret) < SECRET_LEAST
            or not secret.isascii()
            or not secret.isprintable()
            or " " in secret
        ):
            raise ValueError(
                f"the secret must have at least {SECRET_LEAST} printable characters without blanks"
            )
        self._secret = secret.encode()
        self._key: EllipticCurvePrivateKey | None = None
        if key:
            try:
                found = load_pem_private_key(key, None)
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"not a PEM file with a private key that has no pass phrase: {error}"
                ) from None
            if not isinstance(found, EllipticCurvePrivateKey) or not isinstance(
                found.curve, SECP256R1
            ):
                raise ValueError("must be an elliptic-curve key on P-256 (prime256v1)")
            self._key = found

    def can_sign(self, kind: str) -> bool:
        return bool(self._key if kind == "es256" else self._secret)

    def sign(self, kind: str, room: Room, host: str, until_s: int) -> bytes:
        """Signs a JWT that is valid before the Unix second `until_s`."""
        claims = json.dumps(
            {"aud": room.name, "host": host, "path": room.path, "exp": until_s},
            separators=(",", ":"),
        )
        text = (
            _base64url(b'{"alg":"%b","typ":"JWT"}' % kind.upper().encode())
            + b"."
            + _base64url(claims.encode())
        )
        return text + b"." + _base64url(self._signature(kind, text))

    def link(self, room: Room, sent_host: bytes, until_s: int) -> bytes:
        """Empty when the Host header is too long."""
        if not 0 < len(sent_host) <= LINK_HOST_MAX:
            return b""
        last = b"%d" % (until_s - 1)  # nginx counts the second that it is given as valid
        text = last + sent_host + self.link_secret(room.name, room.path)
        return (
            _base64url(hashlib.md5(text, usedforsecurity=False).digest()) + b"," + last
        )  # as secure_link takes it

    def link_secret(self, room: str, path: str) -> bytes:
        """Derived, so that nginx does not have the shared secret."""
        made = hmac.digest(
            self._secret, f"secure_link {json.dumps([room, path])}".encode(), "sha256"
        )
        return _base64url(made)[:LINK_SECRET]

    def _signature(self, kind: str, text: bytes) -> bytes:
        if kind == "hs256":
            return hmac.digest(self._secret, text, "sha256")
        if self._key is None:
            raise ValueError("there is no key for es256")
        r, s = decode_dss_signature(self._key.sign(text, ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _base64url(data: bytes) -> bytes:
    return b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=")


def pass_cookie_name(room: Room) -> str:
    return f"{COOKIE_NAME}_{room.cookie_suffix}" if room.cookie_suffix else COOKIE_NAME


def no_pass_because(room: Room, keys: PassKeys | None, others: Iterable[Room]) -> str:
    """Empty when it can have passes. `keys` is None when they could not be read: a problem of
    theirs.
    """
    if keys is not None and not keys.can_sign(room.native_pass):
        return (
            f"needs {'key_file' if room.native_pass in ('es256',) else 'secret_file'} in"
            " [native_pass]"
        )
    if room.additional_routes or room.case_insensitive_paths:
        return "needs a room with one route and without case_insensitive_paths"
    other = _opens_another(room, others)
    return (
        f"cannot be used, because room {other.name} covers a path below {room.path}"
        if other
        else ""
    )


def _opens_another(room: Room, others: Iterable[Room]) -> Room | None:
    """A room below the same path."""
    prefix = route_prefix(room.path)
    for other in others:
        for route in other.routes if other.id != room.id else ():
            if route_prefix(route.path).startswith(prefix + "/") and _hosts_meet(room.host, route):
                return other
    return None


def _hosts_meet(host: str, route: Route) -> bool:
    first, second = host.removeprefix("*").lstrip("."), route.host.removeprefix("*").lstrip(".")
    if "*" not in host + route.host:
        return first == second
    return (
        not first
        or not second
        or f".{first}".endswith(f".{second}")
        or f".{second}".endswith(f".{first}")
    )


class PassWriter:
    __slots__ = ("_cookies", "_keys", "_kind", "_room", "_signed")

    def __init__(self, room: Room, keys: PassKeys, always_use_https: bool) -> None:
        self._room = room
        self._kind = room.native_pass
        self._keys = keys
        self._cookies = TicketCookies(room, always_use_https, pass_cookie_name(room))
        self._signed: dict[tuple[str | bytes, int], bytes] = {}

    def cookie(self, arrival: Arrival, outcome: Outcome, now_ms: int) -> bytes:
        """Empty when too little time is left. Its attributes are those of the ticket."""
        until_ms = min(outcome.renewed_ms + self._room.renewal_age_ms, outcome.expires_ms)
        until_s = until_ms // 1000
        left_ms = until_s * 1000 - now_ms
        if left_ms < LEAST_MS:
            return b""
        links = self._kind == "secure_link"
        host: str | bytes = arrival.header(b"host") or b"" if links else arrival.host
        signed = self._signed.get((host, until_s))
        if signed is None:
            if len(self._signed) >= PASSES_CACHED:
                self._signed.clear()
            if isinstance(host, bytes):
                signed = self._keys.link(self._room, host, until_s)
            else:
                signed = self._keys.sign(self._kind, self._room, host, until_s)
            self._signed[host, until_s] = signed
        return (
            self._cookies.of(arrival.scheme, arrival.prefix).set(
                signed, -(-left_ms // 1000), now_ms
            )
            if signed
            else b""
        )


def pass_writer(
    room: Room, keys: PassKeys | None, rooms: Iterable[Room], always_use_https: bool
) -> PassWriter | None:
    if room.native_pass not in ANY_PASS or keys is None or no_pass_because(room, keys, rooms):
        return None
    return PassWriter(room, keys, always_use_https)


MakePasses = Callable[[Room], PassWriter | None]
