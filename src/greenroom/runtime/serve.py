import asyncio
import contextlib
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path

from greenroom.config_file.source import ConfigSource
from greenroom.keys.ticket_keys import (
    ACTIVATION_DELAY_MS,
    KEY_FILE,
    KEY_OVERLAP_MS,
    KeyRing,
)
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.logs import set_up_logs
from greenroom.runtime.loops import Say
from greenroom.runtime.parts import ProcessParts
from greenroom.runtime.process import Process


def serve_until_stopped(
    source: ConfigSource, say: Say, *, one_of_many: bool, parts: ProcessParts
) -> None:
    """Raises InvalidConfig, CannotStart or StorageFailed when it cannot start."""

    async def serve() -> None:
        process = Process(source, say, one_of_many=one_of_many, parts=parts)
        set_up_logs(process.config.log)
        await process.run()

    run_in_loop(serve)


def run_in_loop(main: Callable[[], Awaitable[None]]) -> None:
    """With as many open files as the system allows."""
    _allow_open_files()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_awaited(main))


async def _awaited(main: Callable[[], Awaitable[None]]) -> None:
    await main()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The standard loop is about a tenth slower."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _allow_open_files() -> None:
    # The usual soft limit of 1,024 would be a waiting room for 500; the hard limit is the
    # administrator's.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def rotate_keys(data: Path) -> str:
    """Returns what happens next. Raises StorageFailed or InvalidConfig."""
    if not (data / KEY_FILE).exists():
        raise CannotStart(
            f"no keys found in {data}: set the data directory of greenroom with --data"
        )
    now_ms = MonotonicClock().now_ms()
    KeyRing(data, now_ms).rotate(now_ms)
    seconds, minutes = ACTIVATION_DELAY_MS // 1000, KEY_OVERLAP_MS // 60_000
    return (
        f"new key written to {data}; it is used in {seconds} seconds, and the old key opens tickets"
        f" for {minutes} more minutes"
    )
