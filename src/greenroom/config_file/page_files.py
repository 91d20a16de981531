"""Files that pages of a room are made of: a template, and a logo."""

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from greenroom.configuration.file_tables import NamedFiles, read_text, step
from greenroom.errors import Problem
from greenroom.model.branding import LOGO_BYTES_MAX
from greenroom.model.room import TEMPLATE_MAX
from greenroom.pages.template import template_problems

FILE_KEY, HTML_KEY = "custom_page_file", "custom_page_html"


def read_template(
    raw: Mapping[str, Any],
    values: dict[str, Any],
    pointer: str,
    files: NamedFiles,
    text_line: Callable[[str], int],
) -> list[Problem]:
    """Puts the template into `values`; returns everything wrong."""
    html = values.get(HTML_KEY)
    if FILE_KEY in raw and isinstance(raw[FILE_KEY], str) and raw[FILE_KEY]:
        return _from_file(raw[FILE_KEY], values, step(pointer, FILE_KEY), files)
    if not isinstance(html, str) or not html:
        return []
    at = step(pointer, HTML_KEY)
    return [
        Problem(at, found.reason, _line(text_line(at), found.line))
        for found in template_problems(html, at)
    ]


def _from_file(written: str, values: dict[str, Any], at: str, files: NamedFiles) -> list[Problem]:
    path = files.path(written)
    if values.get(HTML_KEY):
        return [Problem(at, f"cannot be used together with {HTML_KEY}")]
    text = read_text(path, at, TEMPLATE_MAX)
    if isinstance(text, Problem):
        return [text]
    values[HTML_KEY] = text
    return [
        Problem(at, f"{path} line {found.line}: {found.reason}")
        for found in template_problems(text, at)
    ]


def _line(first: int, within: int) -> int:
    return first + max(0, within - 1) if first else 0


LOGO_KEY, DATA_KEY = "logo_file", "logo"
TYPES = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".webp": "webp",
    ".gif": "gif",
    ".svg": "svg+xml",
}


def with_logo(
    raw: Mapping[str, Any], pointer: str, files: NamedFiles, problems: list[Problem]
) -> dict[str, Any]:
    """Replaces `logo_file` by `logo`; adds what is wrong to `problems`."""
    values = {key: value for key, value in raw.items() if key != LOGO_KEY}
    if LOGO_KEY not in raw:
        return values
    at, name = step(pointer, LOGO_KEY), raw[LOGO_KEY]
    if not isinstance(name, str) or Path(name).suffix.lower() not in TYPES:
        problems.append(Problem(at, f"must name a file that ends in {', '.join(TYPES)}"))
    elif values.get(DATA_KEY):
        problems.append(Problem(at, f"cannot be used together with {DATA_KEY}"))
    else:
        picture = files.content(name, at, LOGO_BYTES_MAX)
        if isinstance(picture, Problem):
            problems.append(picture)
        else:
            data = base64.b64encode(picture).decode()
            values[DATA_KEY] = f"data:image/{TYPES[Path(name).suffix.lower()]};base64,{data}"
    return values
