"""The errors greenroom raises on purpose; expected outcomes are values."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """`pointer` names the field as the operator reached it (`rooms[2].path`), `reason` says what is
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
    """ALL problems found. `files`: paths that a file names."""

    def __init__(self, problems: list[Problem], files: Sequence[str] = ()) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
        self.files = tuple(files)


class StorageFailed(GreenroomError):
    """No visitor may be admitted because of a refused write."""


class TooNew(StorageFailed): ...


class RevisionConflict(GreenroomError):
    def __init__(self, expected: int, found: int) -> None:
        super().__init__(
            f"the configuration has changed since it was read: revision {found}, not {expected}"
        )
        self.expected = expected
        self.found = found


class AgentRefused(GreenroomError): ...


class AgentNameTaken(AgentRefused): ...
