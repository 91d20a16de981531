"""Writes plain values as TOML that people like to read; the standard library only reads it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

SMALL = 4
"""Most entries of a table that is written on one line."""

SHORT = 60
"""Most characters of a text in such a table."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\\]")


def toml_text(document: Mapping[str, Any]) -> str:
    """The document as TOML: big tables in lists become `[[...]]`, texts of several lines stay so. A null is left out: TOML has none."""
    return "\n".join(_table(document, "")).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """First what stands on lines of its own, then what has a header: whatever comes behind one would belong to it."""
    headed = {key: value for key, value in table.items() if _wants_header(value)}
    for key, value in table.items():
        if key not in headed and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in headed.items():
        at = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(value, Mapping):
            yield from ("", f"[{at}]", *_table(value, at))
        else:
            for entry in value:
                yield from ("", f"[[{at}]]", *_table(entry, at))


def _wants_header(value: Any) -> bool:
    if isinstance(value, Mapping):
        return not _is_small(value)
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value) and not all(map(_is_small, value))


def _is_small(table: Mapping[str, Any]) -> bool:
    return len(table) <= SMALL and all(_is_short(value) for value in table.values())


def _is_short(value: Any) -> bool:
    """Fits on a line among others."""
    if isinstance(value, Mapping):
        return not any(isinstance(inner, (Mapping, list)) for inner in value.values())
    if isinstance(value, list):
        return len(value) <= SMALL and not any(isinstance(inner, (Mapping, list)) for inner in value)
    return not isinstance(value, str) or (len(value) <= SHORT and "\n" not in value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _lines(value) if "\n" in value else _string(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_inline(entry)}" for key, entry in value.items() if entry is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        if any(isinstance(entry, Mapping) for entry in value):
            return "[\n" + "".join(f"    {_inline(entry)},\n" for entry in value) + "]"
        return f"[{', '.join(map(_inline, value))}]"
    return repr(value)


def _inline(value: Any) -> str:
    """Inside a table on one line there are no texts of several lines."""
    return _string(value) if isinstance(value, str) else _value(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(text: str) -> str:
    """A text of several lines as one; only what TOML wants escaped is."""
    escaped = _ESCAPED.sub(lambda found: json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f", text)
    return '"""\n' + escaped.replace('"""', '""\\"') + ('"""' if not escaped.endswith('"') else "\\\n" + '"""')
