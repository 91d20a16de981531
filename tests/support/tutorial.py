"""Follows a tutorial literally: every step of its list is one sentence of a small grammar, done in
a real browser.

A sentence that is in no form of the grammar is an error, so a tutorial cannot contain a step that
is not followed.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from playwright.sync_api import Locator, Page, expect

PATIENCE_MS = 90_000
"""A dry run takes some seconds of computing on a machine that has other things to do."""


class TutorialStep(NamedTuple):
    """`does` is a key of FORMS, or "picture"; `parts` are what stands between the marks."""

    does: str
    parts: tuple[str, ...]


def _press(page: Page, name: str, where: str | None) -> None:
    scope = {
        "in the tabs": page.locator(".tabs"),
        "in the page": page.locator("main"),
        "at the end": page.locator("main form"),
    }.get(where or "")
    found = (scope or page.locator("main")).locator("a, button, summary").and_(_named(page, name))
    found.first.click()


def _named(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=name, exact=True).or_(
        page.get_by_role("button", name=name, exact=True)
    )


def _field(page: Page, name: str) -> Locator:
    """The unit of a field is behind its label, in brackets."""
    return page.get_by_label(re.compile(rf"^\s*{re.escape(name)}(\s*\(.*\))?\s*$")).first


FORMS: dict[str, tuple[str, Callable[..., None]]] = {
    "press": (r"Press \*\*(.+?)\*\*(?: (in the tabs|in the page|at the end))?\.", _press),
    "type": (
        r"Type `(.+?)` into \*\*(.+?)\*\*\.",
        lambda page, text, name: _field(page, name).fill(text),
    ),
    "tick": (r"Tick \*\*(.+?)\*\*\.", lambda page, name: page.get_by_label(name).check()),
    "choose": (
        r"Choose \*\*(.+?)\*\* for \*\*(.+?)\*\*\.",
        lambda page, choice, name: _field(page, name).select_option(label=choice),
    ),
    "see": (
        r"You see “(.+?)”\.?",
        lambda page, text: expect(page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS),
    ),
}
BEGINNING = "Open the address that greenroom printed"
_PICTURE = re.compile(r"!\[.*\]\(.*/([\w-]+\.webp)\)")


def steps_of(text: str) -> list[TutorialStep]:
    """Every step, in order. Raises ValueError for one that the grammar does not have."""
    found = []
    for line in text.splitlines():
        picture = _PICTURE.fullmatch(line)
        if picture:
            found.append(TutorialStep("picture", (picture[1],)))
        elif line.startswith("- ") and not line.startswith(
            (f"- {BEGINNING}", "- Everything", "- The same")
        ):
            found.append(_step(line[2:]))
    return found


def _step(sentence: str) -> TutorialStep:
    for does, (form, _) in FORMS.items():
        match = re.fullmatch(form, sentence)
        if match:
            return TutorialStep(does, match.groups())
    raise ValueError(f"no form of a step: {sentence!r}")


def follow(
    page: Page, steps: list[TutorialStep], picture: Callable[[str], None] = lambda _: None
) -> None:
    """Does every step; `picture` is called where the tutorial shows one."""
    for step in steps:
        if step.does == "picture":
            picture(step.parts[0])
        else:
            FORMS[step.does][1](page, *step.parts)
