"""Two front ends in one process share its one decision service: one set of limits, one count, one
reload, one end.
"""

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

from plain_front_end import Given, PlainFrontEnd

from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.source import FileSource
from greenroom.decision.service import DecisionService
from greenroom.runtime.process import Process

CONFIG = """
origin = "{origin}"
listen = "127.0.0.1:0"
control = "127.0.0.1:0"
data = "{data}"
[[rooms]]
name = "main"
host = "*"
total_active_users = {active}
new_users_per_minute = 100
confirm_newcomers = false
"""
PAGE = ((b"Host", b"shop.example"), (b"Accept", b"text/html"))


class Second(PlainFrontEnd):
    """A front end that notes what becomes of it."""

    def __init__(self, config: ProcessConfig, decisions: DecisionService) -> None:
        super().__init__(decisions, lambda *_: (200, (), b"origin"))
        self.story = [f"made for {config.rooms[0].total_active_users}"]

    async def start(self) -> None:
        self.story.append("started")

    def configure(self, config: ProcessConfig) -> None:
        self.story.append(f"configured for {config.rooms[0].total_active_users}")

    async def drain(self, seconds: float, progress: Any) -> int:
        progress(0)
        self.story.append(f"drained within {seconds:.0f} s")
        return 0

    def close(self) -> None:
        self.story.append("closed")


def get(address: Any) -> bytes:
    request = urllib.request.Request(
        f"http://{address}/", headers={"Accept": "text/html", "Host": "shop.example"}
    )
    with urllib.request.urlopen(request) as response:
        return response.read()


async def test_two_front_ends_share_limits_counts_reloads_and_the_end(
    tmp_path: Path, origin: Any
) -> None:
    path, made, said = tmp_path / "greenroom.toml", [], []

    def written(active: int) -> None:
        path.write_text(CONFIG.format(origin=origin.url, data=tmp_path / "data", active=active))

    def make(config: ProcessConfig, decisions: DecisionService) -> Second:
        made.append(Second(config, decisions))
        return made[0]

    written(1)
    process = Process(FileSource(path), said.append, front_ends=[make])
    running = asyncio.create_task(process.run())
    await asyncio.wait_for(process.ready.wait(), 60)
    second: Second = made[0]

    def visit() -> Given:
        return second.request("GET", "/", PAGE)

    assert visit().body == b"origin"
    assert b"line" in await asyncio.to_thread(get, process.listen), (
        "the one place is taken at the other front end"
    )
    assert process.state().rooms[0].requests == {"admitted": 1, "held": 1}
    written(2)
    await process._followed.reloader.reload()
    end = asyncio.get_running_loop().time() + 60
    while visit().body != b"origin":  # the coordinator grants the new permit in its own time
        assert asyncio.get_running_loop().time() < end, "the second place is not given"
        await asyncio.sleep(0.1)  # as above
    assert visit().status == 200
    assert b"line" in visit().body
    process.stopping.set()
    await asyncio.wait_for(running, 60)
    assert second.story == [
        "made for 1",
        "started",
        "configured for 2",
        "drained within 30 s",
        "closed",
    ]
