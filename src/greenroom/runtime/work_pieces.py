import asyncio
import time

WORK_S = 0.005
"""After this much work requests are served first."""


class WorkPieces:
    """One piece of long work inside the event loop. It must not work on what a request changes."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    async def breathe(self) -> None:
        """Serves requests when it is time; call it after each small step."""
        if time.monotonic() - self._began_s >= WORK_S:
            await asyncio.sleep(0)
            self._began_s = time.monotonic()
