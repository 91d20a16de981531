"""The documentation of this version. The wheel holds the files of `docs/`; a checkout reads them
from there. Raw HTML is shown as text.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

SECTIONS = {
    "tutorial": "Tutorial",
    "howto": "Guides",
    "explanation": "Concepts",
    "reference": "Reference",
    "decisions": "Decisions",
}

INTERNALS = (
    "decisions/",
    "howto/drive-the-core",
    "howto/run-the-tests",
    "explanation/beside-nginx",
    "explanation/config-store",
    "explanation/follow-one-",
    "explanation/journal-format",
    "explanation/native-pass",
    "explanation/redis-ledger",
    "explanation/request-canonical-form",
)
"""Prefixes of pages for people who change greenroom; the others are for those who run it."""

HELP = "/help"

TABLE = (
    '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table class="table">'
)

_COMMENT = re.compile(r"<!--.*?-->\n*", re.S)
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_HEADING = re.compile(r"^(#+) (.+)$", re.M)
_MARKS = re.compile(r"[`*]|\[(?=[^\]]*\]\()|\]\([^)]*\)")


class HelpHeading(NamedTuple):
    text: str
    anchor: str


class HelpPage(NamedTuple):
    name: str
    title: str
    headings: tuple[HelpHeading, ...]
    text: str

    @property
    def path(self) -> str:
        return f"{HELP}/{self.name}"

    @property
    def internal(self) -> bool:
        return self.name.startswith(INTERNALS)


@cache
def documents() -> Mapping[str, HelpPage]:
    packed = Path(str(files("greenroom.dashboard"))) / "documents"
    folder = packed if packed.is_dir() else Path(__file__).resolve().parents[3] / "docs"
    found = [
        _read(f"{section}/{file.stem}", file.read_text("utf-8"))
        for section in SECTIONS
        for file in sorted((folder / section).glob("*.md"))
    ]
    return {one.name: one for one in found}


def _read(name: str, text: str) -> HelpPage:
    text = _COMMENT.sub("", text)
    headings = _HEADING.findall(_FENCE.sub("", text))
    title = next((plain(found) for marks, found in headings if marks == "#"), name)
    below = [found for marks, found in headings if marks != "#"]
    return HelpPage(
        name, title, tuple(HelpHeading(plain(found), anchor_of(found)) for found in below), text
    )


def plain(heading: str) -> str:
    return _MARKS.sub("", heading).strip()


def anchor_of(heading: str) -> str:
    """The anchor that GitHub makes."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@lru_cache(maxsize=128)
def shown(name: str, base: str) -> Markup:
    """The page as HTML, without its title. Raises KeyError."""
    from markdown_it import MarkdownIt  # 80 ms, when the first page is shown

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("table_open", lambda *_: TABLE)
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = list(_without_title(markdown.parse(documents()[name].text)))
    taken: set[str] = set()
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = anchor_of(tokens[number + 1].content)
            token.attrSet("id", anchor if anchor not in taken else f"{anchor}-{number}")
            taken.add(anchor)
        for child in token.children or ():
            _settle(child, name, base)
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704  our own text, with its HTML escaped


def _without_title(tokens: list[Any]) -> Iterator[Any]:
    inside = False
    for token in tokens:
        if token.type == "heading_open" and token.tag == "h1":
            inside = True
        if not inside:
            yield token
        if token.type == "heading_close":
            inside = False


def _settle(token: Any, name: str, base: str) -> None:
    """Turns links to what is not here (source files, pictures) into text."""
    if token.type == "image":
        token.type, token.tag, token.children, token.content = "text", "", None, ""
    if token.type != "link_open":
        return
    target = str(token.attrs.get("href", ""))
    if re.match(r"https?://", target):
        token.attrs = {"href": target, "rel": "noreferrer"}
        return
    file, _, anchor = target.partition("#")
    there = (
        posixpath.normpath(posixpath.join(posixpath.dirname(name), file)).removesuffix(".md")
        if file
        else name
    )
    if there in documents():
        token.attrs = {
            "href": f"{base}{documents()[there].path}" + (f"#{anchor}" if anchor else "")
        }
    else:
        token.attrs = {"href": f"{base}{HELP}"} if there == "README" else {}
