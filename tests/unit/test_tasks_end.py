"""A task ends when it is told to, even if a library takes the cancellation for a failure."""

import asyncio

import pytest

from greenroom.notifier import ended
from greenroom.runtime.loops import beside


async def deaf(deafness: list[int]) -> None:
    """A loop whose library turns so many cancellations into errors, which count as failed tries."""
    while True:
        try:
            await asyncio.sleep(3600.0)  # never over: it is cancelled
        except asyncio.CancelledError:
            deafness[0] -= 1
            if deafness[0] < 0:
                raise


async def test_tasks_that_miss_a_cancellation_are_cancelled_again() -> None:
    tasks = [asyncio.create_task(deaf([times])) for times in (0, 1, 2)]
    await asyncio.sleep(0)  # each is in its loop now
    await asyncio.wait_for(ended(tasks), 20)
    assert all(task.done() for task in tasks)
    await ended(tasks)  # nothing is left to do


async def test_a_process_ends_although_the_library_of_a_loop_swallows_the_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`asyncio.wait_for` of Python 3.11 returns what it has when the cancellation comes as the wait
    ends; the loop around it never hears of it.
    """
    monkeypatch.setattr("greenroom.runtime.loops.LAST_WORK_S", 0.1)
    errors: list[BaseException] = []
    ended_work: list[str] = []

    async def ends_with_work() -> None:
        try:
            await asyncio.sleep(3600.0)  # never over: it is cancelled
        finally:
            await asyncio.sleep(0)
            ended_work.append("told")

    async with asyncio.timeout(20), beside(errors.append, lambda: deaf([1]), ends_with_work):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert (errors, ended_work) == ([], ["told"])
