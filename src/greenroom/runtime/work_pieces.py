"""Long work inside the event loop, in pieces between which visitors are served."""

import asyncio
import time

WORK_S = 0.005
"""After this much work in one go requests are served first."""


class WorkPieces:
    """For one piece of long work. What it works on must not be what a request changes."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    async def breathe(self) -> None:
        """Call it after each small step: lets requests be served when it is time."""
        if time.monotonic() - self._began_s >= WORK_S:
            await asyncio.sleep(0)
            self._began_s = time.monotonic()
