"""The demo: a shop as origin, a room that is quickly full, and a crowd, in one process."""

import asyncio
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenroom.analytics.rollup import Part
from greenroom.analytics.store.keeper import RoomPlace
from greenroom.config_file.addresses import address_of, address_problems
from greenroom.config_file.source import OptionSource
from greenroom.configuration.file_tables import FILE_ZONE_ID
from greenroom.configuration.status import status
from greenroom.demo.console import Browser, DemoCrowd, console_routes
from greenroom.demo.shop import Shop
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.room import Room
from greenroom.notifier import LAST_WORK_S, ended
from greenroom.runtime.analytics import open_keeper
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.listener import AppListener, bind, bound
from greenroom.runtime.logs import set_up_logs
from greenroom.runtime.loops import Say
from greenroom.runtime.process import Process
from greenroom.runtime.serve import run_in_loop
from greenroom.settings.process import SOCKET_FILE, Address, AnalyticsRetention, Server
from greenroom.simulator.history import history

ROOM = {
    "name": "shop",
    "host": "*",
    "total_active_users": 5,
    "new_users_per_minute": 10,
    "session_duration": 1,
    "enabled_origin_commands": ["revoke"],
}
"""Small enough to be filled by hand."""

HISTORY_DAYS = 30
WRITE_EVERY_S = 6 * 3_600

LOG_LEVEL = "warning"


def run_demo(
    listen: str | None,
    control: str | None,
    crowd_size: int,
    say: Say,
    *,
    with_history: bool,
) -> None:
    """Default addresses that are in use are replaced. `with_history`: begin with a generated
    month.
    """
    run_in_loop(lambda: _demo(listen, control, crowd_size, say, with_history))


def run_shop(listen: str | None, say: Say) -> None:
    """The address is never replaced: the configuration of a proxy names it."""
    run_in_loop(lambda: _shop_only(listen or Server().listen, say))


async def _shop_only(listen: str, say: Say) -> None:
    address = address_of(listen)
    if address is None:
        raise InvalidConfig([Problem("--listen", "must be address:port")])
    stopping = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, stopping.set)
    listener = AppListener(Shop(time.monotonic).app, bind(address, "the shop"))
    await listener.start()
    say(f"the demo shop listens on {address}, without a waiting room")
    await stopping.wait()
    await listener.close()


async def _demo(
    listen: str | None, control: str | None, crowd_size: int, say: Say, with_history: bool
) -> None:
    addresses = _addresses({"listen": listen, "control": control}, say)
    folder = Path(tempfile.mkdtemp(prefix="greenroom-demo-"))
    shop = Shop(time.monotonic)
    shop_socket = bind(Address("127.0.0.1", 0), "the shop")
    shop_listener = AppListener(shop.app, shop_socket)
    raw = {
        "origin": f"http://{bound(shop_socket)}",
        "data": str(folder),
        "log": {"level": LOG_LEVEL},
        "rooms": [ROOM],
        **addresses,
    }

    def visit() -> Address:
        return _reachable(process.listen)

    def room() -> Mapping[str, Any]:
        return next(iter(status(process.state())["rooms"]), {})

    crowd = DemoCrowd(lambda: Browser(visit().host, visit().port, str(visit())), random.Random())  # noqa: S311  people, not secrets
    crowd.resize(crowd_size)
    process = Process(
        OptionSource(raw, {}), say, console_routes(crowd, lambda: f"http://{visit()}/", room)
    )
    set_up_logs(process.config.log)
    await shop_listener.start()
    if with_history:
        say("making a month of history; every minute of it is marked as generated")
        await asyncio.to_thread(
            fill_with_history, folder, process.config.rooms[0], int(time.time())
        )
    helpers = [
        asyncio.create_task(_explain(process, say)),
        asyncio.create_task(_play(process, crowd)),
    ]
    try:
        await process.run()
    finally:
        await ended(helpers, LAST_WORK_S)
        await shop_listener.close()
        shutil.rmtree(folder, ignore_errors=True)


def fill_with_history(data: Path, room: Room, now_s: int) -> None:
    """The only place where anything generated enters analytics. Raises StorageFailed."""
    end_s = now_s // 60 * 60
    begin_s = end_s - HISTORY_DAYS * 86_400
    keeper = open_keeper(
        "", data, AnalyticsRetention(), lambda _: RoomPlace(FILE_ZONE_ID, room.name)
    )
    waiting: list[Part] = []
    try:
        for parts in history(random.Random, room, begin_s * 1000, end_s * 1000):
            waiting += parts
            hour_ends_s = (parts[-1].minute + 1) * 60
            if (end_s - hour_ends_s) % WRITE_EVERY_S == 0:
                keeper.write(waiting, hour_ends_s)
                waiting = []
    finally:
        keeper.close()


async def _play(process: Process, crowd: DemoCrowd) -> None:
    await process.ready.wait()
    playing = asyncio.create_task(crowd.run())
    try:
        await process.stopping.wait()
    finally:
        await ended([playing], LAST_WORK_S)


async def _explain(process: Process, say: Say) -> None:
    await process.ready.wait()
    shop, console = _reachable(process.listen), _reachable(process.control)
    say("")
    say("A shop with room for 5 active visitors and 10 new visitors a minute.")
    say(f"  1. Open  http://{shop}/       You are let in at once.")
    say(f"  2. Open  http://{console}/demo   Switch the crowd on and watch the shop fill.")
    say("  3. Open the shop again in a private window: as a new visitor you wait in line.")
    say("  4. Switch the crowd off: the visitors in line are let in.")
    say(
        f"  5. Sign in with the link above, then open  http://{console}/rooms?tour=1  for a tour of the dashboard in four steps."
    )
    say("")
    say("Ctrl-C stops the demo.")


def _addresses(asked: Mapping[str, str | None], say: Say) -> dict[str, str]:
    problems = [
        problem
        for key, text in asked.items()
        if text is not None
        for problem in address_problems(f"--{key}", text)
    ]
    files = [key for key, text in asked.items() if text and text.startswith(SOCKET_FILE)]
    problems += [Problem(f"--{key}", "must be address:port in the demo") for key in files]
    if problems:
        raise InvalidConfig(problems)
    found = {}
    for key, text in asked.items():
        default = getattr(Server(), key)
        found[key] = text or default
        address = address_of(found[key])
        if address is None:
            raise InvalidConfig([Problem(f"--{key}", "must be address:port")])
        if text is None and not _free(address):
            found[key] = str(_any_port(address.host))
            say(f"{default} is in use; taking {found[key]} instead")
    return found


def _free(address: Address) -> bool:
    try:
        bind(address, "trying").close()
    except CannotStart:
        return False
    # A socket that is bound but was never connected leaves nothing behind, so the address can be
    # taken again at once.
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as caller:
        return caller.connect_ex(address[:2]) != 0


def _any_port(host: str) -> Address:
    trial = bind(Address(host, 0), "trying")
    try:
        return bound(trial)
    finally:
        trial.close()


def _reachable(address: Address) -> Address:
    return Address("127.0.0.1", address.port) if address.host in ("0.0.0.0", "::") else address  # noqa: S104  compared, not bound
