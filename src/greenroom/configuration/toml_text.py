"""Writes plain values as readable TOML, which the standard library can only read."""

from collections.abc import Mapping
from typing import Any

import tomli_w


def toml_text(document: Mapping[str, Any]) -> str:
    r"""Omits nulls. TOML may turn `\r\n` in several lines into `\n`, so a document with such a text
    has single lines only.
    """
    plain = _without_nulls(document)
    return tomli_w.dumps(plain, multiline_strings=not _has_crlf(plain))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _has_crlf(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_crlf(inner) for inner in value.values())
    if isinstance(value, list):
        return any(map(_has_crlf, value))
    return isinstance(value, str) and "\r\n" in value
