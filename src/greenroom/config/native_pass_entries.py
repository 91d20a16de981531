"""Reads `[native_pass]`: the keys of passes that proxies verify by themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from greenroom.decision.native_pass import PassKeys, no_pass_because
from greenroom.errors import Problem
from greenroom.model.fields import spec
from greenroom.model.room import ANY_PASS, Room

FILE_MAX = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePass:
    """Keys for rooms with `native_pass`. Paths are relative to the file's directory."""

    secret_file: str = spec(
        "file with the secret that greenroom and the proxy share, for hs256 and secure_link: 32"
        " characters or more",
        "",
        high=4096,
    )
    key_file: str = spec(
        "PEM file with the private key for es256, on P-256; the proxy has the public key",
        "",
        high=4096,
    )


def read_pass_keys(
    section: NativePass | None, folder: Path, rooms: Iterable[Room], problems: list[Problem]
) -> tuple[PassKeys | None, tuple[Path, ...]]:
    """Returns the keys and their files; adds what is wrong with them, or with a room that wants
    passes, to `problems`.
    """
    wanted = section or NativePass()
    texts, files = {}, []
    for name in ("secret_file", "key_file"):
        written = getattr(wanted, name)
        texts[name] = b""
        if written:
            files.append(folder / written)
            try:
                with open(files[-1], "rb") as file:
                    texts[name] = file.read(FILE_MAX)
            except (OSError, ValueError) as error:  # ValueError: a NUL in the name
                reason = getattr(error, "strerror", None) or error
                problems.append(
                    Problem(f"native_pass.{name}", f"cannot read {files[-1]}: {reason}")
                )
    keys: PassKeys | None = None
    try:
        keys = PassKeys(texts["secret_file"].decode("latin-1").strip(), texts["key_file"])
    except ValueError as error:
        problems.append(Problem("native_pass", str(error)))
    rooms = list(rooms)
    for index, room in enumerate(rooms):
        reason = (
            no_pass_because(room, keys, rooms)
            if room.native_pass in ANY_PASS and keys is not None
            else ""
        )
        if reason:
            problems.append(Problem(f"rooms[{index}].native_pass", reason))
    return keys, tuple(files)
