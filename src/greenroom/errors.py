"""The errors greenroom raises on purpose; expected outcomes are values."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with what an operator wrote.

    `pointer` names the field as the operator reached it (`rooms[2].path`), `reason` says what is
    wrong and what would be right, `line` is 1-based, 0 without a file.
    """

    pointer: str
    reason: str
    line: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{self.pointer}: {self.reason}"


class GreenroomError(Exception): ...


class InvalidConfig(GreenroomError):
    """Carries ALL problems found, never just the first.

    `files` are the paths that a file names: what is wrong may be in one of them.
    """

    def __init__(self, problems: list[Problem], files: Sequence[str] = ()) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
        self.files = tuple(files)


class StorageFailed(GreenroomError):
    """A write was refused; no visitor may be admitted because of it."""


class TooNew(StorageFailed):
    """Written by a newer greenroom: this one must not touch it."""


class RevisionConflict(GreenroomError):
    """The configuration has changed since it was read: read it again, and plan the change again."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(
            f"the configuration has changed since it was read: revision {found}, not {expected}"
        )
        self.expected = expected
        self.found = found


class AgentRefused(GreenroomError):
    """The process does not run the health checks, or has too many agents."""


class AgentNameTaken(AgentRefused): ...
