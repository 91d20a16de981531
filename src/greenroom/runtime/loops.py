import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

REST_S = 1.0


@contextlib.asynccontextmanager
async def beside(
    on_error: Callable[[BaseException], None], *loops: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Restarts a loop that fails."""

    async def endless(loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
            except Exception as error:
                on_error(error)
            await asyncio.sleep(REST_S)

    tasks = [asyncio.create_task(endless(loop)) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
