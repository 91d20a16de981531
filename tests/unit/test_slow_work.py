"""Slow work has threads of its own: what is quick does not wait for it, and too much of it is
refused.
"""

import asyncio
import threading
from pathlib import Path

from dashboard_rig import Visitor, dashboard_in
from starlette.concurrency import run_in_threadpool

from greenroom.accounts import people
from greenroom.web.refusals import Refused
from greenroom.web.routing import SlowWork

TAKEN = people.AT_ONCE + 30
"""Passwords that are judged or wait to be; more are refused."""


def test_what_is_quick_does_not_wait_and_too_much_is_refused() -> None:
    release = threading.Event()

    async def story() -> list[int]:
        work = SlowWork(2, waiting=3)
        slow = [asyncio.create_task(work.run(release.wait, 30)) for _ in range(100)]
        assert await asyncio.wait_for(run_in_threadpool(lambda: 1), 10) == 1
        release.set()
        ended = await asyncio.gather(*slow, return_exceptions=True)
        assert await work.run(lambda: 2) == 2
        return [one.status if isinstance(one, Refused) else 200 for one in ended]

    assert asyncio.run(story()) == [200] * 5 + [429] * 95


def test_pages_are_shown_while_a_hundred_passwords_are_judged(tmp_path: Path, monkeypatch) -> None:
    release = threading.Event()

    def judged(*_: str) -> bool:
        release.wait(60)
        return False

    async def story(rig, reader: Visitor) -> tuple[int, list[int]]:
        guesses = [
            asyncio.create_task(
                Visitor(rig, address=f"127.0.1.{number}")._ask(
                    "POST", "/sign-in", {"name": f"n{number}", "password": "wrong"}, {}
                )
            )
            for number in range(100)
        ]
        while sum(guess.done() for guess in guesses) < 100 - TAKEN:
            await asyncio.sleep(0.01)  # until all are judged, wait or are refused
        page = await asyncio.wait_for(reader._ask("GET", "/rooms", None, {}), 30)
        release.set()
        return page.status_code, [(await guess).status_code for guess in guesses]

    with dashboard_in(tmp_path) as rig:
        reader = rig.person("viewer")
        monkeypatch.setattr("greenroom.accounts.sign_in.password_fits", judged)
        shown, statuses = rig.run(story(rig, reader))
    assert shown == 200
    assert set(statuses) == {401, 429}
    assert statuses.count(401) == TAKEN
