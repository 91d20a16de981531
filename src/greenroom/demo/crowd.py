"""Visitors come, wait as their browser is told to, shop and go."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable

from greenroom.demo.browser import Browser, ShopPage
from greenroom.demo.products import PRODUCTS

CROWD_MAX = 500

CROWD_NORMAL = 14
"""Leaves a line of about two minutes."""

ARRIVAL_S = 0.25

PATIENCE_S = (240.0, 900.0)
LOOKS = (5, 9)
LOOK_S = (5.0, 12.0)
"""Visits of a minute or so: the shop is full, and not only as many as may come in a minute."""


class DemoCrowd:
    def __init__(self, new_browser: Callable[[], Browser], chance: random.Random) -> None:
        self.size = 0
        self.counts: Counter[str] = Counter(let_in=0, bought=0, gave_up=0, failed=0)
        self._new_browser = new_browser
        self._chance = chance
        self._visits: dict[asyncio.Task[None], str] = {}

    def resize(self, size: int) -> None:
        self.size = max(0, min(CROWD_MAX, size))

    def doing(self, what: str) -> int:
        return sum(state == what for state in self._visits.values())

    async def run(self) -> None:
        try:
            while True:
                self._bring_to_size()
                await asyncio.sleep(ARRIVAL_S)
        finally:
            visits = list(self._visits)
            for visit in visits:
                visit.cancel()
            await asyncio.gather(*visits, return_exceptions=True)

    def _bring_to_size(self) -> None:
        for visit in list(self._visits)[self.size :]:
            visit.cancel()
        if len(self._visits) < self.size:
            visit = asyncio.create_task(self._visit())
            self._visits[visit] = "arriving"
            visit.add_done_callback(self._gone)

    def _gone(self, visit: asyncio.Task[None]) -> None:
        del self._visits[visit]
        if not visit.cancelled() and visit.exception() is not None:
            self.counts["failed"] += 1

    def _now(self, what: str) -> None:
        task = asyncio.current_task()
        if task in self._visits:
            self._visits[task] = what

    async def _visit(self) -> None:
        browser = self._new_browser()
        if await self._wait(browser):
            self.counts["let_in"] += 1
            self._now("shopping")
            await self._shop(browser)

    async def _wait(self, browser: Browser) -> bool:
        patience_s = self._chance.uniform(*PATIENCE_S)
        page = await browser.load("/")
        while page.refresh_s is not None:
            self._now("waiting")
            patience_s -= page.refresh_s
            if patience_s < 0:
                self.counts["gave_up"] += 1
                return False
            await asyncio.sleep(page.refresh_s)
            page = await browser.load("/")
        return page.status == 200

    async def _shop(self, browser: Browser) -> None:
        slug = ""
        for _ in range(self._chance.randint(*LOOKS)):
            await asyncio.sleep(self._chance.uniform(*LOOK_S))
            slug = self._chance.choice(PRODUCTS).slug
            if _held(await browser.load(f"/products/{slug}")):
                return
        await browser.load(f"/basket?add={slug}", "POST")
        await asyncio.sleep(self._chance.uniform(*LOOK_S))
        if not _held(await browser.load("/checkout", "POST")):
            self.counts["bought"] += 1


def _held(page: ShopPage) -> bool:
    return page.refresh_s is not None
