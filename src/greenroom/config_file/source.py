"""Sources of a configuration: a file that may change, or command-line options."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from greenroom.config_file.load import Overrides, config_of, load_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.errors import InvalidConfig

Stamp = tuple[tuple[str, int, int, int, int], ...]


class ConfigSource(Protocol):
    """Can be read repeatedly."""

    @property
    def name(self) -> str:
        """For people: the file, or empty."""

    def load(self) -> ProcessConfig:
        """Raises InvalidConfig with every problem."""

    def stamp(self) -> Stamp:
        """Changes whenever a file behind the configuration does, however it was replaced."""


def load_stamped(source: ConfigSource) -> tuple[ProcessConfig, Stamp]:
    """Returns the stamp of the files before they were read; for newly named files, their current
    one.
    """
    before = source.stamp()
    config = source.load()
    return config, stamp_since(before, source)


def stamp_since(before: Stamp, source: ConfigSource) -> Stamp:
    """`before`, with the current stamp of newly named files."""
    known = {item[0]: item for item in before}
    return tuple(known.get(item[0], item) for item in source.stamp())


class FileSource:
    def __init__(
        self, path: Path, overrides: Overrides | None = None, *, needs_origin: bool = True
    ) -> None:
        """`needs_origin`: as `read_config`."""
        self._needs_origin = needs_origin
        self._path = path
        self._overrides = overrides
        self._files: tuple[Path, ...] = (path,)
        self._good: tuple[Path, ...] = (path,)

    @property
    def name(self) -> str:
        return str(self._path)

    def load(self) -> ProcessConfig:
        # Also notes which files to look at from now on: its own, and those of a configuration that
        # was refused since.
        try:
            config = load_config(self._path, self._overrides, needs_origin=self._needs_origin)
        except InvalidConfig as error:
            self._files = tuple(dict.fromkeys((*self._good, *map(Path, error.files))))
            raise
        self._good = self._files = config.files
        return config

    def stamp(self) -> Stamp:
        """Stats each file behind its links; costs microseconds. Polling works where notification
        does not (network and container file systems, a changed link further up).
        """
        return tuple(_stamp(path) for path in self._files)


class OptionSource:
    """`options` names the command-line option behind each pointer."""

    name = ""

    def __init__(
        self, raw: Mapping[str, Any], options: Mapping[str, str], *, needs_origin: bool = True
    ) -> None:
        """`needs_origin`: as `read_config`."""
        self._raw = raw
        self._options = options
        self._needs_origin = needs_origin

    def load(self) -> ProcessConfig:
        return config_of(self._raw, options=self._options, needs_origin=self._needs_origin)

    def stamp(self) -> Stamp:
        return ()


def _stamp(path: Path) -> tuple[str, int, int, int, int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return str(path), 0, 0, 0, 0
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
