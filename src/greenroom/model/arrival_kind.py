from enum import IntEnum

import msgspec


class ArrivalKind(IntEnum):
    """The table is in `request.admissible`."""

    SPECULATION = 0
    SOCKET = 1
    PREFLIGHT = 2
    PREVIEW = 3
    UPDATE = 4
    DOCUMENT = 5
    SCRIPT = 6
    PART = 7
    PROGRAM = 8


class HeaderSigns(msgspec.Struct, frozen=True, gc=False):
    """What header lines say of the kind of an arrival. Browsers of one kind share it.

    `kind` is None when the path decides between PART and `otherwise`. `preflight`: an OPTIONS
    request with these lines is one. `document`: a DOCUMENT with any method and path. `embedded`: a
    page of another site shows it in a frame. `wants_facts`: the answer may be facts instead of the
    page: JSON, or a page's update.
    """

    kind: ArrivalKind | None
    otherwise: ArrivalKind = ArrivalKind.PROGRAM
    preflight: bool = False
    document: bool = False
    crawler: bool = False
    prefers_json: bool = False
    embedded: bool = False
    wants_facts: bool = False
