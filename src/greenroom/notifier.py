"""Changes that this process made reach its loops at once; what others changed they look for. And
how loops end.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

CANCEL_AGAIN_S, LAST_WORK_S = 0.2, 10.0
"""LAST_WORK_S: longer than a loop works at its end."""


class Wake:
    """Ends the rest of one loop."""

    __slots__ = ("_event", "set")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set = self._event.set
        """In the event loop; a change while the loop does not rest ends its next one."""

    async def rest(self, at_most_s: float | None = None) -> bool:
        """Returns whether it was set."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class ChangeNotifier:
    def __init__(self) -> None:
        self._watchers: tuple[Callable[[], object], ...] = ()

    def watch(self, changed: Callable[[], object]) -> Callable[[], None]:
        """`changed` is called in the thread of `notify`; it must not block or raise. Returns the
        function that ends it.
        """
        self._watchers += (changed,)

        def end() -> None:
            self._watchers = tuple(one for one in self._watchers if one is not changed)

        return end

    def notify(self) -> None:
        for changed in self._watchers:
            changed()


def in_loop(call: Callable[[], object]) -> Callable[[], object]:
    """`call`, from any thread, in the event loop that runs now."""
    loop = asyncio.get_running_loop()
    return lambda: loop.call_soon_threadsafe(call)


async def ended(tasks: Collection[asyncio.Task[Any]], again_s: float = CANCEL_AGAIN_S) -> None:
    """Cancels until all have ended. Once is not enough: `asyncio.wait_for` of Python 3.11, which
    client libraries use, swallows a cancellation that comes as the wait ends. `again_s`: LAST_WORK_S
    for tasks with work at their end.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again_s)
    await asyncio.gather(*tasks, return_exceptions=True)
