"""Every function of bypass rules, one row each. A missing argument makes a missing result without
calling `run`. Nothing here raises for any value of the declared types.
"""

import binascii
import json
import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, NamedTuple

from greenroom.rules.addresses import network, shown
from greenroom.rules.patterns import lower, upper
from greenroom.rules.reading import percent_decoded
from greenroom.rules.syntax import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGER_MAX,
    INTEGER_MIN,
    IP,
    STRING,
    STRINGS,
    STRINGS_BY_NAME,
    ValueKind,
    array,
    as_bytes_text,
)

DECODE_ROUNDS_MAX = 16
"""Each round of a hostile value costs its whole length."""

SPLIT_MAX = 128


class Param(NamedTuple):
    """`source`: a "field" (or a call), a "literal", or "any" of them."""

    name: str
    kinds: tuple[ValueKind, ...]
    source: str = "any"


class FunctionSpec(NamedTuple):
    """Parameters from `needed` on are optional; with `repeats` the last one may be repeated.
    `gives` None: the type of the arguments. `refuse`: what is wrong with the literals.
    """

    params: tuple[Param, ...]
    gives: ValueKind | None
    run: Callable[..., Any]
    help: str
    needed: int = 1
    repeats: bool = False
    refuse: Callable[..., str | None] = lambda *_: None


def _url_decode(text: str, options: str = "") -> str:
    for _ in range(DECODE_ROUNDS_MAX if "r" in options else 1):
        before, text = text, percent_decoded(text.replace("+", " "))
        if "u" in options and "%u" in text:
            text = re.sub(r"%u([0-9A-Fa-f]{4})", _unicode_escape, text)
        if text == before:
            break
    return text


def _unicode_escape(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return found[0] if 0xD800 <= code < 0xE000 else as_bytes_text(chr(code))


def _options_problem(options: str = "") -> str | None:
    return None if set(options) <= set("ru") else 'the options of url_decode are "r" and "u"'


def _substring(text: str, start: int, end: int | None = None) -> str:
    return text[start:end]


def _json_at(text: str, *keys: str | int) -> Any:
    try:
        found = json.loads(text.encode("latin-1"))
        for key in keys:
            if not isinstance(found, list if isinstance(key, int) else dict):
                return None
            found = found[key if isinstance(key, int) else key.encode("latin-1").decode()]  # type: ignore[index]
    except (ValueError, LookupError, RecursionError):
        return None
    return found


def _json_string(text: str, *keys: str | int) -> str | None:
    found = _json_at(text, *keys)
    return found.encode(errors="replace").decode("latin-1") if isinstance(found, str) else None


def _json_integer(text: str, *keys: str | int) -> int | None:
    found = _json_at(text, *keys)
    return (
        found
        if isinstance(found, int)
        and not isinstance(found, bool)
        and INTEGER_MIN <= found <= INTEGER_MAX
        else None
    )


def _keys_problem(*keys: str | int) -> str | None:
    return (
        "an index into JSON must not be negative"
        if any(isinstance(key, int) and key < 0 for key in keys)
        else None
    )


def _holds(container: Any, value: str) -> bool:
    return value in container


def _remove_bytes(text: str, unwanted: str) -> str:
    return text.translate(dict.fromkeys(map(ord, unwanted)))


MAC_LENGTH = 43

TIME_LENGTH = 10


def _timed_hmac(
    key: str, text: str, lifetime: int, now: int, separator: int = 0, flags: str = ""
) -> bool:
    mac_at = len(text) - MAC_LENGTH - 1 if "s" in flags else text.rfind("-")
    if mac_at < TIME_LENGTH or text[mac_at] != "-":
        return False
    mac, issued, message = (
        text[mac_at + 1 :],
        text[mac_at - TIME_LENGTH : mac_at],
        text[: mac_at - TIME_LENGTH],
    )
    if not (issued.isascii() and issued.isdigit()) or separator > len(message):
        return False
    try:
        given = (
            urlsafe_b64decode(mac + "=")
            if "s" in flags
            else b64decode(percent_decoded(mac), validate=True)
        )
    except (binascii.Error, ValueError):
        return False
    wanted = digest(
        key.encode("latin-1"),
        (message[: len(message) - separator] + issued).encode("latin-1"),
        sha256,
    )
    return compare_digest(given, wanted) and now < int(issued) + lifetime


def _hmac_problem(*literals: Any) -> str | None:
    key, *rest = literals
    numbers = [item for item in rest if isinstance(item, int)]
    if not key:
        return "the key must not be empty"
    if any(number < 0 for number in numbers):
        return "lifetime and separator length must not be negative"
    return (
        'the only flag is "s"'
        if any(isinstance(item, str) and item not in ("", "s") for item in rest)
        else None
    )


def _cidr_problem(*bits: int) -> str | None:
    v6, *v4 = reversed(bits)
    fits = 0 <= v6 <= 128 and all(0 <= count <= 32 for count in v4)
    return None if fits else "prefix lengths reach from 0 to 32 for IPv4 and from 0 to 128 for IPv6"


def _split(text: str, separator: str, most: int) -> list[str]:
    return text.split(separator, most - 1)


def _split_problem(separator: str, most: int) -> str | None:
    if not separator:
        return "the separator must not be empty"
    return None if 1 <= most <= SPLIT_MAX else f"the limit must be between 1 and {SPLIT_MAX}"


def _join(parts: list[str | None], separator: str) -> str:
    return separator.join([part for part in parts if part is not None])


def _decode_base64(text: str) -> str | None:
    try:
        return b64decode(text.encode("latin-1"), validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return None


def _to_string(value: int | bool) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def _remove_query_args(query: str, *names: str) -> str:
    return "&".join([part for part in query.split("&") if part.partition("=")[0] not in names])


def _concat(first: Any, *rest: Any) -> Any:
    for part in rest:
        first = first + part
    return first


_FIELD = "field"
_LITERAL = "literal"
_TEXT = Param("input", (STRING,), _FIELD)
_WHOLE = array(INTEGER)

FUNCTIONS: dict[str, FunctionSpec] = {
    "any": FunctionSpec(
        (Param("test", (BOOLEANS,), _FIELD),),
        BOOLEAN,
        any,
        "whether the test holds for at least one element",
    ),
    "all": FunctionSpec(
        (Param("test", (BOOLEANS,), _FIELD),),
        BOOLEAN,
        all,
        "whether it holds for every element; true for none, false for a missing array",
    ),
    "starts_with": FunctionSpec(
        (_TEXT, Param("start", (STRING,))),
        BOOLEAN,
        str.startswith,
        "whether the string starts with the prefix",
        2,
    ),
    "ends_with": FunctionSpec(
        (_TEXT, Param("end", (STRING,))),
        BOOLEAN,
        str.endswith,
        "whether the string ends with the suffix",
        2,
    ),
    "lower": FunctionSpec((_TEXT,), STRING, lower, "ASCII letters in lower case"),
    "upper": FunctionSpec((_TEXT,), STRING, upper, "ASCII letters in upper case"),
    "len": FunctionSpec(
        (Param("input", (STRING, STRINGS, _WHOLE, BOOLEANS), _FIELD),),
        INTEGER,
        len,
        "bytes of a string, elements of an array",
    ),
    "concat": FunctionSpec(
        (Param("first", (STRING, STRINGS)), Param("more", (STRING, STRINGS))),
        None,
        _concat,
        "strings or arrays, concatenated",
        2,
        True,
    ),
    "url_decode": FunctionSpec(
        (_TEXT, Param("options", (STRING,), _LITERAL)),
        STRING,
        _url_decode,
        '`%XX` as the byte and `+` as a blank; option "r" again until nothing changes, "u" also'
        " `%uXXXX`",
        refuse=_options_problem,
    ),
    "substring": FunctionSpec(
        (_TEXT, Param("start", (INTEGER,), _LITERAL), Param("end", (INTEGER,), _LITERAL)),
        STRING,
        _substring,
        "bytes from start up to, not including, end; negative ones count from the end",
        2,
    ),
    "lookup_json_string": FunctionSpec(
        (_TEXT, Param("key", (STRING, INTEGER), _LITERAL)),
        STRING,
        _json_string,
        "the string at these keys of a JSON text",
        2,
        True,
        _keys_problem,
    ),
    "lookup_json_integer": FunctionSpec(
        (_TEXT, Param("key", (STRING, INTEGER), _LITERAL)),
        INTEGER,
        _json_integer,
        "the integer at these keys of a JSON text",
        2,
        True,
        _keys_problem,
    ),
    "has_key": FunctionSpec(
        (Param("map", (STRINGS_BY_NAME,), _FIELD), Param("key", (STRING,))),
        BOOLEAN,
        _holds,
        "whether the map contains this key",
        2,
    ),
    "has_value": FunctionSpec(
        (Param("array", (STRINGS,), _FIELD), Param("value", (STRING,))),
        BOOLEAN,
        _holds,
        "whether the array contains this value",
        2,
    ),
    "remove_bytes": FunctionSpec(
        (_TEXT, Param("unwanted", (STRING,), _LITERAL)),
        STRING,
        _remove_bytes,
        "without any of these bytes",
        2,
    ),
    "is_timed_hmac_valid_v0": FunctionSpec(
        (
            Param("key", (STRING,), _LITERAL),
            Param("message_mac", (STRING,), _FIELD),
            Param("lifetime", (INTEGER,), _LITERAL),
            Param("now", (INTEGER,)),
            Param("separator_length", (INTEGER,), _LITERAL),
            Param("flags", (STRING,), _LITERAL),
        ),
        BOOLEAN,
        _timed_hmac,
        'whether message, separator, 10-digit time, "-" and Base64 HMAC-SHA256 (of message and'
        ' time) are valid and not older than lifetime seconds; flag "s": URL-safe Base64 without'
        " padding",
        4,
        refuse=_hmac_problem,
    ),
    "cidr": FunctionSpec(
        (
            Param("address", (IP,), _FIELD),
            Param("ipv4_bits", (INTEGER,), _LITERAL),
            Param("ipv6_bits", (INTEGER,), _LITERAL),
        ),
        IP,
        network,
        "the network address with this many leading bits",
        3,
        refuse=_cidr_problem,
    ),
    "cidr6": FunctionSpec(
        (Param("address", (IP,), _FIELD), Param("ipv6_bits", (INTEGER,), _LITERAL)),
        IP,
        lambda key, bits: network(key, 32, bits),
        "like cidr for IPv6; an IPv4 address is unchanged",
        2,
        refuse=_cidr_problem,
    ),
    "split": FunctionSpec(
        (_TEXT, Param("separator", (STRING,), _LITERAL), Param("limit", (INTEGER,), _LITERAL)),
        STRINGS,
        _split,
        f"parts between separators, at most limit (1 to {SPLIT_MAX}); the last one holds the rest",
        3,
        refuse=_split_problem,
    ),
    "join": FunctionSpec(
        (Param("parts", (STRINGS,), _FIELD), Param("separator", (STRING,), _LITERAL)),
        STRING,
        _join,
        "the parts with the separator between them",
        2,
    ),
    "decode_base64": FunctionSpec(
        (_TEXT,), STRING, _decode_base64, "the bytes of a Base64 text; missing when it is not valid"
    ),
    "to_string": FunctionSpec(
        (Param("value", (INTEGER, BOOLEAN, IP), _FIELD),), STRING, _to_string, "the value as text"
    ),
    "remove_query_args": FunctionSpec(
        (_TEXT, Param("name", (STRING,), _LITERAL)),
        STRING,
        _remove_query_args,
        "a query without the arguments of these names",
        2,
        True,
    ),
}

TEXT_OF_ADDRESS = shown
"""Chosen by type at compile time."""

ABSENT_FUNCTIONS = {
    "regex_replace": "rewrites a request, which a bypass rule cannot",
    "wildcard_replace": "rewrites a request, which a bypass rule cannot",
    "uuidv4": "returns random values, which a condition must not depend on",
    "sha256": "is not offered to bypass rules",
    "encode_base64": "is not offered to bypass rules",
    "hmac": "is not offered to bypass rules; use is_timed_hmac_valid_v0",
}
