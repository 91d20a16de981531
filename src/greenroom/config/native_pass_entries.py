"""Reads `[native_pass]`: the keys of passes that proxies verify by themselves."""

from collections.abc import Mapping

from greenroom.config.named_files import NamedFiles
from greenroom.decision.native_pass import PassKeys, no_pass_because
from greenroom.errors import Problem
from greenroom.model.room import ANY_PASS, Room
from greenroom.settings.process import NativePass

FILE_MAX = 64 * 1024


def read_pass_keys(
    section: NativePass | None,
    files: NamedFiles,
    places: Mapping[str, Room],
    problems: list[Problem],
) -> PassKeys | None:
    """Adds what is wrong with them, or with a room that wants passes, to `problems`. `places`: rooms
    by pointer.
    """
    wanted = section or NativePass()
    texts, read = {}, True
    for name in ("secret_file", "key_file"):
        written = getattr(wanted, name)
        content = files.content(written, f"native_pass.{name}", FILE_MAX) if written else b""
        if isinstance(content, Problem):
            read = False
            problems.append(content)
        else:
            texts[name] = content
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
    return keys
