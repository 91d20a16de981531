"""Secrets that stand in files of their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenroom.config.toml_lines import step
from greenroom.errors import Problem

SECRET_FILE_MAX = 10_000
"""Bytes; a larger file does not hold a secret on its first line."""


class SecretFiles:
    """First lines of files; the files are watched from now on."""

    def __init__(self, folder: Path) -> None:
        self.files: list[Path] = []
        self._folder = folder

    def first_line(self, entry: Mapping[str, Any], at: str, key: str) -> tuple[str, list[Problem]]:
        """Empty when the entry names no file."""
        written = entry.get(key)
        if not written or not isinstance(written, str):
            return "", []
        path = self._folder / written
        self.files.append(path)
        reason = ""
        try:
            with path.open("rb") as file:
                text = file.read(SECRET_FILE_MAX + 1)
            if len(text) > SECRET_FILE_MAX:
                reason = f"{path} is larger than {SECRET_FILE_MAX} bytes"
            line = text.decode().partition("\n")[0].strip("\r")
            reason = reason or ("" if line else f"{path} is empty")
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
            line = ""
            reason = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        return line, [Problem(step(at, key), reason)] if reason else []
