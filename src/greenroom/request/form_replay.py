"""Which forms of held visitors are kept on the waiting page. A replay must mean exactly what the
form meant: it comes from a page of the same origin, and every field as a browser wrote it. Not
kept: chosen files, text that is not UTF-8, NUL, single CR or LF, fields without a name,
`_charset_`, parts with other headers.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from greenroom.model.arrival_kind import ArrivalKind
from greenroom.model.visit import Arrival
from greenroom.request.admissible import kind_of
from greenroom.request.cross_origin import provably_from_here

FORM_BYTES_MAX = 64 * 1024
"""Each held visitor's form is in memory while it is read."""

FIELDS_MAX = 1_000
"""What Django accepts."""

URLENCODED, MULTIPART = b"application/x-www-form-urlencoded", b"multipart/form-data"

_UTF8 = re.compile(rb'\s*charset="?utf-?8"?\s*', re.IGNORECASE)
_BOUNDARY = re.compile(rb'\s*boundary=("?)([0-9A-Za-z\'()+_,./:=?-]{1,70})\1\s*', re.IGNORECASE)
_LONE = re.compile(rb"\0|\r(?!\n)|(?<!\r)\n")
_PART = re.compile(
    rb'content-disposition: form-data; name="([^"\\\r\n]+)"(; filename=""\r\ncontent-type:'
    rb" application/octet-stream)?",
    re.IGNORECASE,
)


class FormField(NamedTuple):
    """`file`: a file field without a chosen file."""

    name: str
    value: str
    file: bool = False


class KeptForm(NamedTuple):
    fields: tuple[FormField, ...]
    multipart: bool


def sent_by_form(arrival: Arrival) -> bool:
    return arrival.method == "POST" and kind_of(arrival) is ArrivalKind.DOCUMENT


def may_keep_form(arrival: Arrival) -> bool:
    if (
        not sent_by_form(arrival)
        or not provably_from_here(arrival)
        or arrival.header(b"content-encoding") is not None
    ):
        return False
    return _encoding(arrival) is not None


def form_of(arrival: Arrival, body: bytes) -> KeptForm | None:
    """None when it cannot be sent again exactly."""
    boundary = _encoding(arrival)
    if boundary is None or len(body) > FORM_BYTES_MAX:
        return None
    found = _parts(body, boundary) if boundary else _pairs(body)
    if found is None or len(found) > FIELDS_MAX:
        return None
    try:
        fields = tuple(
            [
                FormField(name.decode(), value.decode(), file)
                for name, value, file in found
                if not _LONE.search(name + b"=" + value)
            ]
        )
    except UnicodeDecodeError:
        return None
    if len(fields) < len(found) or not all(
        field.name and field.name.lower() != "_charset_" for field in fields
    ):
        return None
    return KeptForm(fields, bool(boundary))


def _encoding(arrival: Arrival) -> bytes | None:
    """Empty for an urlencoded form; None for anything else."""
    kind, _, rest = (arrival.header(b"content-type") or b"").partition(b";")
    kind = kind.strip().lower()
    if kind == URLENCODED:
        return b"" if not rest or _UTF8.fullmatch(rest) else None
    boundary = _BOUNDARY.fullmatch(rest) if kind == MULTIPART else None
    return boundary[2] if boundary else None


_Found = list[tuple[bytes, bytes, bool]]


def _pairs(body: bytes) -> _Found | None:
    if body.count(b"&") >= FIELDS_MAX:
        return None
    halves = [pair.replace(b"+", b" ").partition(b"=") for pair in body.split(b"&") if pair]
    return [(unquote_to_bytes(name), unquote_to_bytes(value), False) for name, _, value in halves]


def _parts(body: bytes, boundary: bytes) -> _Found | None:
    """None for a body that is not written as browsers do."""
    line = b"\r\n--" + boundary
    first, *parts = (b"\r\n" + body).split(line, FIELDS_MAX + 2)
    if first or not parts or parts.pop() not in (b"--", b"--\r\n"):
        return None
    found = []
    for part in parts:
        head, between, value = part.partition(b"\r\n\r\n")
        said = (
            _PART.fullmatch(head.removeprefix(b"\r\n"))
            if between and head.startswith(b"\r\n")
            else None
        )
        if said is None or (said[2] and value):
            return None
        found.append((said[1], value, bool(said[2])))
    return found
