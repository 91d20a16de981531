"""Errors in expressions and their position, with a caret in the published style."""

from typing import NamedTuple


class RuleFault(NamedTuple):
    """Character offsets into the expression."""

    start: int
    end: int
    reason: str


class RuleRefused(Exception):
    def __init__(self, *faults: RuleFault) -> None:
        super().__init__("; ".join(fault.reason for fault in faults))
        self.faults = faults


def line_of(source: str, fault: RuleFault) -> int:
    return source.count("\n", 0, min(fault.start, len(source))) + 1


def draw(source: str, fault: RuleFault) -> str:
    """Lines and columns count from 1."""
    start = min(fault.start, len(source))
    first = source.rfind("\n", 0, start) + 1
    last = source.find("\n", start)
    line = source[first : last if last >= 0 else len(source)]
    column = start - first
    carets = "^" * max(1, min(fault.end - start, len(line) - column))
    shown = line.replace("\t", " ").rstrip("\r").encode(errors="replace").decode()
    return (
        "Filter parsing error"
        f" ({line_of(source, fault)}:{column + 1}):\n{shown}\n{' ' * column}{carets} {fault.reason}"
    )
