"""Seeds and results of draws in the data directory. A seed is HMAC(secret, draw id), so a crash loses
none. Whoever can read the secret can compute every order beforehand.
"""

import contextlib
import hmac
import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from greenroom.admission.draw import Draw
from greenroom.errors import StorageFailed

SECRET_FILE = "draw.secret"  # noqa: S105  the name of the file
FOLDER = "draws"
SECRET_BYTES = 32
KEPT_AT_HAND = 4

DRAW_MAX_BYTES = 1 << 30

_DRAW_ID = re.compile(r"[0-9a-f]{32}")


class DrawFiles:
    def __init__(self, data: Path, entropy: Callable[[int], bytes] = os.urandom) -> None:
        """Touches the disk only when needed."""
        self._path = data / SECRET_FILE
        self._folder = data / FOLDER
        self._entropy = entropy
        self._secret = b""
        self._at_hand: dict[str, Draw] = {}

    def seed(self, draw_id: str) -> bytes:
        return hmac.digest(self.secret(), f"greenroom draw {draw_id}".encode(), "sha256")

    def secret(self) -> bytes:
        """Raises StorageFailed."""
        if not self._secret:
            self._secret = self._read_secret() or self._make_secret()
        return self._secret

    def adopt(self, secret: bytes) -> None:
        """Raises StorageFailed, or ValueError for no secret."""
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"a secret has {SECRET_BYTES} bytes, not {len(secret)}")
        if secret != self.secret():
            try:
                _write(
                    new := self._path.with_name(f".{SECRET_FILE}.{os.getpid()}"),
                    secret.hex().encode() + b"\n",
                    0o600,
                )
                new.replace(self._path)
                _sync(self._path.parent)
            except OSError as error:
                raise StorageFailed(
                    f"cannot write {self._path}: {error.strerror or error}"
                ) from None
            self._secret = secret

    def settle(
        self,
        draw_id: str,
        here: Sequence[str],
        hold: Callable[[Collection[str]], Draw],
        then: Callable[[Draw | StorageFailed], None],
    ) -> None:
        try:
            answer: Draw | StorageFailed = self.held(draw_id) or self.keep(hold(here))
        except StorageFailed as error:
            answer = error
        then(answer)

    def held(self, draw_id: str) -> Draw | None:
        """Raises StorageFailed."""
        if draw_id in self._at_hand:
            return self._at_hand[draw_id]
        content = self.file(draw_id)
        if content is None:
            return None
        try:
            return self._remembered(msgspec.json.decode(content, type=Draw))
        except msgspec.DecodeError as error:
            raise StorageFailed(f"{self._where(draw_id)} is not a draw: {error}") from None

    def keep(self, draw: Draw) -> Draw:
        """Returns the first draw kept, which may be another process's. Raises StorageFailed."""
        new = self._folder / f".{draw.draw}.{os.getpid()}"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _write(new, msgspec.json.format(msgspec.json.encode(draw), indent=1) + b"\n", 0o644)
            with contextlib.suppress(
                FileExistsError
            ):  # another process has held it: its draw counts
                os.link(new, self._where(draw.draw))
            _sync(self._folder)
        except OSError as error:
            raise StorageFailed(
                f"cannot keep the draw in {self._folder}: {error.strerror or error}"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                new.unlink()
        found = self.held(draw.draw)
        if found is None:
            raise StorageFailed(f"{self._where(draw.draw)} went away while it was written")
        return found

    def file(self, draw_id: str) -> bytes | None:
        if not _DRAW_ID.fullmatch(draw_id):
            return None
        try:
            with self._where(draw_id).open("rb") as file:
                return file.read(DRAW_MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed(
                f"cannot read {self._where(draw_id)}: {error.strerror or error}"
            ) from None

    def listed(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            files = [
                path
                for path in self._folder.iterdir()
                if _DRAW_ID.fullmatch(path.stem) and path.suffix == ".json"
            ]
            return [
                path.stem
                for path in sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)
            ]
        return []

    def _where(self, draw_id: str) -> Path:
        return self._folder / f"{draw_id}.json"

    def _remembered(self, draw: Draw) -> Draw:
        self._at_hand[draw.draw] = draw
        while len(self._at_hand) > KEPT_AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
        return draw

    def _read_secret(self) -> bytes:
        """Never replaces a bad file: seeds already promised depend on it."""
        try:
            secret = bytes.fromhex(self._path.read_text("ascii"))
        except FileNotFoundError:
            return b""
        except (OSError, ValueError) as error:
            raise StorageFailed(f"cannot use {self._path}: {error}") from None
        if len(secret) != SECRET_BYTES:
            raise StorageFailed(f"{self._path} does not hold {SECRET_BYTES} bytes in hexadecimal")
        return secret

    def _make_secret(self) -> bytes:
        """Synced before any seed is made; one of concurrent processes wins."""
        new = self._path.with_name(f".{SECRET_FILE}.{os.getpid()}")
        try:
            _write(new, self._entropy(SECRET_BYTES).hex().encode() + b"\n", 0o600)
            with contextlib.suppress(FileExistsError):
                os.link(new, self._path)
            _sync(self._path.parent)
        except OSError as error:
            raise StorageFailed(f"cannot write {self._path}: {error.strerror or error}") from None
        finally:
            with contextlib.suppress(OSError):
                new.unlink()
        return self._read_secret()


def _write(path: Path, content: bytes, mode: int) -> None:
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "wb"
    ) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
