"""Reads `[native_pass]`: the keys of passes that proxies verify by themselves."""

from collections.abc import Mapping
from pathlib import Path

from greenroom.decision.native_pass import PassKeys, no_pass_because
from greenroom.errors import Problem
from greenroom.model.room import ANY_PASS, Room
from greenroom.settings.process import NativePass

FILE_MAX = 64 * 1024


def read_pass_keys(
    section: NativePass | None, folder: Path, places: Mapping[str, Room], problems: list[Problem]
) -> tuple[PassKeys | None, tuple[Path, ...]]:
    """Returns the keys and their files; adds what is wrong with them, or with a room that wants
    passes, to `problems`. `places`: rooms by pointer.
    """
    wanted = section or NativePass()
    texts, files, read = {}, [], True
    for name in ("secret_file", "key_file"):
        written = getattr(wanted, name)
        texts[name] = b""
        if written:
            files.append(folder / written)
            try:
                with open(files[-1], "rb") as file:
                    texts[name] = file.read(FILE_MAX)
            except (OSError, ValueError) as error:  # ValueError: a NUL in the name
                read, reason = False, getattr(error, "strerror", None) or error
                problems.append(
                    Problem(f"native_pass.{name}", f"cannot read {files[-1]}: {reason}")
                )
    keys: PassKeys | None = None
    try:
        if read:
            keys = PassKeys(texts["secret_file"].decode("latin-1").strip(), texts["key_file"])
    except ValueError as error:
        problems.append(Problem("native_pass", str(error)))
    rooms = list(places.values())
    for pointer, room in places.items():
        if room.native_pass in ANY_PASS and (reason := no_pass_because(room, keys, rooms)):
            problems.append(Problem(f"{pointer}.native_pass", reason))
    return keys, tuple(files)
