"""The tutorial of the dashboard, followed word by word in a real Chromium, from an empty
installation to the hour of the sale.
"""

from pathlib import Path

import pytest
from dashboard_browser import DashboardBrowser, chromium, sign_in_link
from tutorial import BEGINNING, TutorialStep, follow, steps_of

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "first-sale.md"
STEPS_MOST = 60


def test_the_tutorial_is_followed_word_by_word(greenroom) -> None:
    running = greenroom.config('origin = "http://127.0.0.1:9"\n')
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
        )
        at = DashboardBrowser(context, sign_in_link(running.output).partition("/sign-in")[0])
        at.go(sign_in_link(running.output))
        follow(at.page, steps_of(TUTORIAL.read_text()))
        assert at.complaints == []


def test_its_pictures_are_there_and_small() -> None:
    pictures = [step.parts[0] for step in steps_of(TUTORIAL.read_text()) if step.does == "picture"]
    assert len(pictures) >= 5
    for name in pictures:
        assert 2_000 < (TUTORIAL.parents[1] / "pictures" / name).stat().st_size < 80_000


def test_it_is_short_and_begins_with_the_link() -> None:
    text = TUTORIAL.read_text()
    assert BEGINNING in text
    assert 10 < len(steps_of(text)) <= STEPS_MOST


def test_a_step_that_cannot_be_followed_is_an_error() -> None:
    assert steps_of("- Press **Save**.") == [TutorialStep("press", ("Save", None))]
    with pytest.raises(ValueError, match="no form of a step"):
        steps_of("- Fiddle with the settings.")
