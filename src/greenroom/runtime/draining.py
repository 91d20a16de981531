import asyncio
from collections.abc import Sequence

from greenroom.runtime.front_ends import FrontEnd, drain_all
from greenroom.runtime.loops import Say


async def drain(
    front_ends: Sequence[FrontEnd], seconds: float, hurry: asyncio.Event, say: Say
) -> None:
    """Waits at most `seconds` for requests under way, or until `hurry`; then cuts them off."""
    told = -1

    def progress(left: int) -> None:
        nonlocal told
        if left != told and left:
            say(
                f"draining: {left} request{'s' if left > 1 else ''} in progress; press Ctrl-C or"
                " send SIGTERM again to end them"
            )
        told = left

    draining = asyncio.create_task(drain_all(front_ends, seconds, progress))
    hurrying = asyncio.create_task(hurry.wait())
    await asyncio.wait([draining, hurrying], return_when=asyncio.FIRST_COMPLETED)
    hurrying.cancel()
    if draining.done():
        cut = draining.result()
    else:
        cut = told
        for front_end in front_ends:
            front_end.close()
        await draining
    say(f"stopped; {cut} request{'s were' if cut > 1 else ' was'} cut off" if cut else "stopped")
