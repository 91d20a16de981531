from enum import IntEnum

import msgspec


class ArrivalKind(IntEnum):
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
    """The kind of an arrival by its header lines. `kind` None: the path decides between PART and
    `otherwise`. `preflight`: if the method is OPTIONS. `embedded`: in a frame of another site.
    `wants_facts`: the answer may be JSON, or a page's update.
    """

    kind: ArrivalKind | None
    otherwise: ArrivalKind = ArrivalKind.PROGRAM
    preflight: bool = False
    document: bool = False
    crawler: bool = False
    prefers_json: bool = False
    embedded: bool = False
    wants_facts: bool = False
