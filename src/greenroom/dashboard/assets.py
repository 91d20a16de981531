"""Static files, served under the hash of their content. Without the npm libraries pages work with a
small style sheet, and without live tables, charts and coloured editors.
"""

import gzip
import hashlib
import json
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from greenroom.dashboard.slices import PACKAGES

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
HASH_CHARACTERS = 16
GZIP_LEAST = 500
"""Below this, compression saves no packet."""


class Asset(NamedTuple):
    """`encodings`: best first."""

    kind: str
    body: bytes
    encodings: tuple[tuple[str, bytes], ...] = ()


class Assets:
    def __init__(self, folders: tuple[Traversable, ...]) -> None:
        self._files: dict[str, Asset] = {}
        self._names: dict[str, str] = {}
        for folder in folders:
            if folder.is_dir():
                for file in folder.iterdir():
                    self._add(folder, file)

    def _add(self, folder: Traversable, file: Traversable) -> None:
        suffix = f".{file.name.rpartition('.')[2]}"
        if suffix not in KINDS or file.name in self._names:
            return
        body = file.read_bytes()
        packed = [
            (coding, folder / f"{file.name}.{ending}")
            for coding, ending in (("br", "br"), ("gzip", "gz"))
        ]
        found = tuple(
            (coding, packed_file.read_bytes())
            for coding, packed_file in packed
            if packed_file.is_file()
        )
        if not found and len(body) >= GZIP_LEAST and suffix != ".woff2":
            found = (("gzip", gzip.compress(body, 9, mtime=0)),)
        stem = file.name.removesuffix(suffix)
        hashed = f"{stem}.{hashlib.sha256(body).hexdigest()[:HASH_CHARACTERS]}{suffix}"
        self._names[file.name] = hashed
        self._files[hashed] = Asset(KINDS[suffix], body, found)

    def has(self, name: str) -> bool:
        return name in self._names

    def name(self, name: str) -> str:
        """Raises KeyError."""
        return self._names[name]

    def get(self, hashed: str) -> Asset | None:
        return self._files.get(hashed)

    def versions(self) -> dict[str, str]:
        file = _package() / "static" / "versions.json"
        return dict(json.loads(file.read_text())) if file.is_file() else {}


def _package() -> Traversable:
    return resources.files("greenroom.dashboard")


@cache
def installed_assets() -> Assets:
    own = [resources.files(name) / "assets" for name in PACKAGES]
    return Assets((*own, _package() / "static"))
