from typing import Protocol


class Clock(Protocol):
    """Unix time that never runs backwards within a process, nor across a restart that kept its
    data.
    """

    def now_ms(self) -> int: ...
