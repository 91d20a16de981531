import asyncio
from collections.abc import Collection
from typing import Any

CANCEL_AGAIN_S = 0.2


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels until all have ended: a client library cancelled at the wrong moment may report an
    error of its own instead. Not for tasks with work at their end.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
