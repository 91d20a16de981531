"""Which ledgers a process has, by its settings: in memory with a journal, or in Redis."""

import contextlib
from collections.abc import Callable, Sequence
from typing import cast

import structlog

from greenroom.admission.schedule import effective
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.shared import SharedLedgers
from greenroom.errors import StorageFailed
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.port import DrawStore
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.model.room import Room
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.ledger_store import LocalLedgerStore, ProcessLedgerStore
from greenroom.runtime.loops import OnError, Say

log = structlog.get_logger(__name__)


def process_clock(shared: SharedLedgers | None) -> ServerClock | MonotonicClock:
    return ServerClock(MonotonicClock()) if shared else MonotonicClock()


def open_ledgers(
    config: Callable[[], ProcessConfig],
    data: DataDir,
    clock: ServerClock | MonotonicClock,
    say: Say,
    on_error: OnError,
) -> ProcessLedgerStore:
    shared = config().shared
    if shared is None or isinstance(clock, MonotonicClock):
        return LocalLedgerStore(data, cast(MonotonicClock, clock), say, on_error)
    from greenroom.runtime.shared_ledger_store import SharedLedgerStore

    return SharedLedgerStore(
        shared, lambda: data_center_names(config()), data.path, clock, say, on_error
    )


def ledger_rooms(config: ProcessConfig) -> Callable[[int], list[Room]]:
    return lambda now_ms: [
        effective(room, config.documents.events_of(room.id), now_ms).ledger_room
        for room in config.rooms
    ]


def data_center_names(config: ProcessConfig) -> tuple[str, ...]:
    return config.shared.data_centers if config.shared else ()


async def agreed_draws(
    shared: SharedLedgers | None,
    files: DrawFiles,
    data_centers: Callable[[], Sequence[str]],
    ending: contextlib.AsyncExitStack,
) -> DrawStore:
    if shared is None:
        return files
    from greenroom.ledgers.redis.draws import RedisDraws
    from greenroom.ledgers.redis.leases import TIMEOUT_S

    draws = RedisDraws(
        shared.global_redis.client(TIMEOUT_S), files, shared.data_center, data_centers
    )
    ending.push_async_callback(draws.close)
    try:
        await draws.agree()
    except StorageFailed as error:  # what was agreed on before still counts
        log.warning("draw_agreement_failed", reason=str(error))
    return draws
