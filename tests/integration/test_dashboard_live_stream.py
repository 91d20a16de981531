"""The stream of the live pages goes on: for a browser that comes when the feed is about to rest,
and after an error in a tick.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, dashboard_in

from greenroom.dashboard import live_feed
from greenroom.dashboard.live_feed import LiveFeed, LiveWatcher

PATIENCE_S = 60


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DashboardRig]:
    monkeypatch.setattr(live_feed, "IDLE_TICKS", 1)
    with dashboard_in(tmp_path) as found:
        found.fill()
        monkeypatch.setattr(found.app.feed, "_end_sessions", no_sessions)
        yield found


async def no_sessions(_known: object) -> None:
    """These watchers have none."""


def watch(feed: LiveFeed) -> AsyncIterator[bytes]:
    return feed.watch(LiveWatcher("r1", "z1", "secret"))


async def first_figures(stream: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        async for message in stream:
            if message.startswith(b"data: "):
                return message
    return b""


def test_a_browser_that_comes_just_before_the_feed_rests_is_told_figures(
    rig: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, resting = rig.app.feed, asyncio.Event()
    tick = feed._tick

    async def ticked(known: object) -> None:
        await tick(known)  # type: ignore[arg-type]
        if not feed.watchers:
            resting.set()  # it sleeps once more, and then it would end

    monkeypatch.setattr(feed, "_tick", ticked)

    async def story() -> bytes:
        stream = watch(feed)
        await first_figures(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE_S):
            await resting.wait()
        return await first_figures(watch(feed))

    assert rig.run(story()).startswith(b"data: ")


def test_an_error_in_one_tick_ends_no_stream(
    rig: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, failures = rig.app.feed, iter([ValueError("for once")])
    made = feed._message

    def message(*of: object) -> bytes:
        for failure in failures:
            raise failure
        return made(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(feed, "_message", message)
    assert rig.run(first_figures(watch(feed))).startswith(b"data: ")
