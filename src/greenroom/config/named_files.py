"""Files that keys of the configuration name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenroom.config.toml_lines import step
from greenroom.errors import Problem

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
