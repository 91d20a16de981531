"""What msgspec's records and native ones of the compiled wheel share."""

from typing import Any, TypeVar

import msgspec

R = TypeVar("R")


def replace(record: R, /, **changes: Any) -> R:
    """TypeError for a field that the record does not have."""
    if isinstance(record, msgspec.Struct):
        return msgspec.structs.replace(record, **changes)
    return record.__replace__(**changes)  # type: ignore[attr-defined, no-any-return]
