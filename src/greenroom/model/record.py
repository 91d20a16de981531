"""What all records have in common, whichever kind of class they are: msgspec's, or native ones in
the compiled wheel.
"""

from typing import Any, TypeVar

import msgspec

R = TypeVar("R")


def replace(record: R, /, **changes: Any) -> R:
    """The same record but for these fields. TypeError for a field that it does not have."""
    if isinstance(record, msgspec.Struct):
        return msgspec.structs.replace(record, **changes)
    return record.__replace__(**changes)  # type: ignore[attr-defined, no-any-return]
