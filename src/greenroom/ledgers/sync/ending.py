"""Ends tasks for certain."""

import asyncio
from collections.abc import Collection
from typing import Any

CANCEL_AGAIN_S = 0.2


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels these tasks until all have ended; what they raise meanwhile is dropped. Not for tasks
    that have something to do at their end.

    Once is not enough: a client library that is cancelled at the wrong moment may report an error
    of its own instead, and an endless loop that takes it for a failed try would go on.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
