"""Builds that are broken on purpose, each with the trial that has to find it: a trial that finds
none of them proves nothing.
"""

from collections.abc import Callable
from typing import Any

import pytest

Trial = Callable[[], list[str]]
Break = Callable[[pytest.MonkeyPatch], None]
Broken = list[tuple[Trial, Break]]


def found_by(trial: Trial, builds: Broken) -> Callable[[Break], Break]:
    """Adds a build that `trial` must find."""

    def noted(build: Break) -> Break:
        builds.append((trial, build))
        return build

    return noted


def must_be_found(trial: Trial, build: Break, patch: pytest.MonkeyPatch) -> None:
    """Breaks the build and tries it."""
    build(patch)
    try:
        found = trial()
    except (
        AssertionError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
    ) as error:  # broken so badly that the books fall apart
        if isinstance(error, TypeError) and "argument" in str(error):
            raise  # the break no longer fits what it breaks, and proves nothing
        found = [repr(error)]
    assert found


def around(patch: pytest.MonkeyPatch, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replaces a method by `wrapper(original, self, ...)`."""
    original = getattr(owner, name)
    patch.setattr(
        owner, name, lambda self, *arguments, **named: wrapper(original, self, *arguments, **named)
    )
