"""Changes that this process made reach its loops at once; what others changed they look for."""

import asyncio
from collections.abc import Callable


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
