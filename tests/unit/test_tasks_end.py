"""A task ends when it is told to, even if a library takes the cancellation for a failure."""

import asyncio

from greenroom.ledgers.sync.leader_loop import ended


async def deaf(deafness: list[int]) -> None:
    """A loop whose library turns so many cancellations into errors, which count as failed tries."""
    while True:
        try:
            await asyncio.sleep(3600.0)  # never over: it is cancelled
        except asyncio.CancelledError:
            deafness[0] -= 1
            if deafness[0] < 0:
                raise


def test_tasks_that_miss_a_cancellation_are_cancelled_again() -> None:
    async def story() -> None:
        tasks = [asyncio.create_task(deaf([times])) for times in (0, 1, 2)]
        await asyncio.sleep(0)  # each is in its loop now
        await asyncio.wait_for(ended(tasks), 20)
        assert all(task.done() for task in tasks)
        await ended(tasks)  # nothing is left to do

    asyncio.run(story())
