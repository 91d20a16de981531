import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.branding import LOGO_BYTES_MAX

FILE_KEY, DATA_KEY = "logo_file", "logo"
TYPES = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".webp": "webp",
    ".gif": "gif",
    ".svg": "svg+xml",
}


def with_logo(
    raw: Mapping[str, Any], pointer: str, folder: Path, files: list[Path], problems: list[Problem]
) -> dict[str, Any]:
    """Replaces `logo_file` by `logo`; notes the file in `files`, and what is wrong in `problems`."""
    values = {key: value for key, value in raw.items() if key != FILE_KEY}
    if FILE_KEY not in raw:
        return values
    at, name = step(pointer, FILE_KEY), raw[FILE_KEY]
    if not isinstance(name, str) or Path(name).suffix.lower() not in TYPES:
        problems.append(Problem(at, f"must name a file that ends in {', '.join(TYPES)}"))
    elif values.get(DATA_KEY):
        problems.append(Problem(at, f"cannot be used together with {DATA_KEY}"))
    else:
        files.append(folder / name)
        try:
            with (folder / name).open("rb") as file:
                picture = file.read(LOGO_BYTES_MAX + 1)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            problems.append(
                Problem(
                    at, f"cannot read {folder / name}: {getattr(error, 'strerror', None) or error}"
                )
            )
        else:
            values[DATA_KEY] = (
                f"data:image/{TYPES[Path(name).suffix.lower()]};base64,{base64.b64encode(picture).decode()}"
            )
    return values
