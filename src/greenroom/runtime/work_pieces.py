import asyncio
import time

WORK_S = 0.005


class WorkPieces:
    """Must not work on what a request changes."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    async def breathe(self) -> None:
        """Call it after each small step."""
        if time.monotonic() - self._began_s >= WORK_S:
            await asyncio.sleep(0)
            self._began_s = time.monotonic()
