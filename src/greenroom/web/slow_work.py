"""Threads of its own for what takes long: the threads that all requests share stay free."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from greenroom.web.refusals import ApiFault, Code, Refused

T = TypeVar("T")

WAITING_MAX = 30
"""More are told to come again."""

RETRY_S = 5


class SlowWork:
    """Belongs to one event loop."""

    def __init__(self, at_once: int, waiting: int = WAITING_MAX) -> None:
        self._at_once = at_once
        self._most = at_once + waiting
        self._begun = 0
        self._limiter: CapacityLimiter | None = None  # needs a running event loop

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Raises Refused when too many wait already."""
        if self._begun >= self._most:
            raise Refused(
                ApiFault(
                    Code.SLOW_DOWN, "too many requests of this kind; try again in a few seconds"
                ),
                retry_after_s=RETRY_S,
            )
        self._limiter = self._limiter or CapacityLimiter(self._at_once)
        self._begun += 1
        try:
            return await to_thread.run_sync(partial(function, *arguments), limiter=self._limiter)
        finally:
            self._begun -= 1
