"""Reads tables of a configuration file by the API's schemas, as read-only entries, and the files
they name.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from greenroom.errors import Problem
from greenroom.model.configuration import Configuration, Entry, R
from greenroom.model.fields import Unique, field_problems, specs, unknown_field, wrong_fields
from greenroom.web.api_schema import ApiSchema, not_said

WIDE = "an integer has more than 64 bits"
"""Python reads any, and then cannot write it in a message."""


def read_toml(text: str) -> dict[str, Any]:
    """Raises tomllib.TOMLDecodeError or RecursionError."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # more digits than Python reads
        raise tomllib.TOMLDecodeError(WIDE) from None
    inside: list[Any] = [raw]
    while inside:
        value = inside.pop()
        if isinstance(value, dict):
            inside += value.values()
        elif isinstance(value, list):
            inside += value
        elif isinstance(value, int) and value.bit_length() > 63:
            raise tomllib.TOMLDecodeError(WIDE)
    return raw


def read_json(text: str) -> Any:
    """Raises ValueError or RecursionError."""
    return json.loads(text, parse_int=_int)


def _int(digits: str) -> int:
    if len(digits) > 20 or (number := int(digits)).bit_length() > 63:
        raise ValueError(WIDE)
    return number


ID_PATTERN = r"[A-Za-z0-9_-]+"
BARE_KEY = re.compile(ID_PATTERN)


def step(pointer: str, key: str | int) -> str:
    """Appends a table's key (a string) or an array's index (a number)."""
    if isinstance(key, int):
        return f"{pointer}[{key}]"
    shown = (
        key
        if BARE_KEY.fullmatch(key)
        else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
    return f"{pointer}.{shown}" if pointer else shown


def unknown_keys(raw: Mapping[str, Any], known: Iterable[str], pointer: str = "") -> list[Problem]:
    names = list(known)
    return [unknown_field(step(pointer, key), key, names) for key in raw if key not in names]


def file_id(*parts: object) -> str:
    """Depends on these only, so tickets, draws and histories survive restarts and reordering."""
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:32]


FILE_ZONE_ID = file_id("the configuration file")
"""The zone of the file's rooms whose host lies in no zone of the store."""


def file_entry(record: R, parent: str = "") -> Entry[R]:
    return Entry(record, parent, 0, 0, 0, read_only=True)


def tables(
    raw: Any, pointer: str, most: int, problems: list[Problem]
) -> list[tuple[str, dict[str, Any]]]:
    """(pointer, table) of each entry; none, and a problem, when it is no list of at most `most`."""
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        name = re.sub(r"\[\d+\]", "", pointer)
        problems.append(Problem(pointer, f"must be written as [[{name}]] tables"))
        return []
    if len(raw) > most:
        problems.append(Problem(pointer, f"must be at most {most} entries, not {len(raw)}"))
        return []
    return [(step(pointer, index), entry) for index, entry in enumerate(raw)]


TableRead = tuple[dict[str, Any], list[Problem]]
"""The values of a table, meaningless where they have problems."""

ReadTable = Callable[[dict[str, Any], str], TableRead]


def read_named(
    raw: Any, section: str, most: int, what: str, read: ReadTable, problems: list[Problem]
) -> list[dict[str, Any]]:
    """The values of the right tables; each has a name and an id of its own."""
    found: list[dict[str, Any]] = []
    names, ids = Unique(what), Unique(f"{what} with the id")
    for at, entry in tables(raw, section, most, problems):
        values, wrong = read(entry, at)
        if not wrong_fields(wrong, f"{at}.") & {"name", "id"}:
            wrong += names.problems(step(at, "name"), values["name"]) or ids.problems(
                step(at, "id"), values.get("id", values["name"])
            )
        problems += wrong
        if not wrong:
            found.append(values)
    return found


def read_document(
    form: ApiSchema,
    raw: Mapping[str, Any],
    pointer: str,
    problems_of: Callable[[dict[str, Any]], list[Problem]],
    beside: type | None = None,
    ignored: Sequence[str] = (),
) -> TableRead:
    """Reads a table by the API's schema; returns its values and all problems. `beside` describes
    keys that are not fields.
    """
    described = specs(beside) if beside else {}
    extra = {
        name: tuple(raw[name]) if isinstance(raw[name], list) else raw[name]
        for name in described
        if name in raw
    }
    wrong = field_problems(beside, extra, f"{pointer}.") if beside else []
    problems: list[Problem] = []
    unknown: list[Problem] = []
    values = form.read_table(raw, (*described, *ignored), problems, unknown)
    problems += not_said(problems, problems_of(values))
    problems += form.missing(values, problems)
    return values, [
        *wrong,
        *(Problem(step(pointer, found.pointer), found.reason) for found in unknown),
        *(Problem(f"{pointer}.{found.pointer}", found.reason) for found in problems),
    ]


SECRET_FILE_MAX = 10_000
"""Bytes; a larger file does not hold a secret on its first line."""


class NamedFiles:
    def __init__(self, folder: Path) -> None:
        """`folder`: where relative paths start."""
        self.paths: list[Path] = []
        """All that were named, to be watched from now on."""
        self._folder = folder

    def path(self, written: str) -> Path:
        self.paths.append(self._folder / written)
        return self.paths[-1]

    def content(self, written: str, pointer: str, size_max: int) -> bytes | Problem:
        return read_content(self.path(written), pointer, size_max)

    def text(self, written: str, pointer: str, size_max: int) -> str | Problem:
        return read_text(self.path(written), pointer, size_max)

    def first_line(self, entry: Mapping[str, Any], at: str, key: str) -> tuple[str, list[Problem]]:
        """The secret in the file that `key` names; empty when the entry names none."""
        written = entry.get(key)
        if not written or not isinstance(written, str):
            return "", []
        pointer = step(at, key)
        text = self.text(written, pointer, SECRET_FILE_MAX)
        if isinstance(text, Problem):
            return "", [text]
        line = text.partition("\n")[0].strip("\r")
        return line, [] if line else [Problem(pointer, f"{self.paths[-1]} is empty")]


def read_content(path: Path, pointer: str, size_max: int) -> bytes | Problem:
    try:
        with path.open("rb") as file:
            content = file.read(size_max + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return Problem(pointer, f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
    if len(content) > size_max:
        return Problem(pointer, f"{path} is larger than {size_max} bytes")
    return content


def read_text(path: Path, pointer: str, size_max: int) -> str | Problem:
    """UTF-8."""
    content = read_content(path, pointer, size_max)
    if isinstance(content, Problem):
        return content
    try:
        return content.decode("utf-8-sig")  # some editors put a mark of the byte order in front
    except UnicodeDecodeError as error:
        return Problem(pointer, f"{path} is not UTF-8 at byte {error.start}")


class FileTables(NamedTuple):
    """A slice's tables of the configuration file. `read` gets the whole file and appends problems.
    `lines`: what `greenroom check` shows.
    """

    names: tuple[str, ...]
    read: Callable[[Mapping[str, Any], NamedFiles, list[Problem]], list[Entry[Any]]]
    lines: Callable[[Configuration], Iterator[str]]
