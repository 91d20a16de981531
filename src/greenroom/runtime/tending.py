import asyncio
from collections.abc import Callable

import structlog

from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.keys.ticket_keys import KeyRing
from greenroom.runtime.ledger_store import ProcessLedgerStore

TEND_S = 1.0
"""A power cut can take what came in between."""

log = structlog.get_logger(__name__)


async def tend(
    ring: KeyRing, ledgers: ProcessLedgerStore, now_ms: Callable[[], int], data: str
) -> None:
    failure, halted = "", set[str]()
    while True:
        await asyncio.sleep(TEND_S)
        found = "; ".join(
            [
                *_failure_of_keys(ring, now_ms(), ledgers.exchanges_keys()),
                *await _failure_of_ledgers(ledgers),
            ]
        )
        if found and found != failure:
            log.error("data_directory_failed", reason=found)
        reasons = ledgers.halted()
        for name in reasons.keys() - halted:
            log.error("admissions_stopped", room=name, reason=found or reasons[name], data=data)
        for name in halted - reasons.keys():
            log.info("admissions_resumed", room=name)
        failure, halted = found, set(reasons)


def _failure_of_keys(ring: KeyRing, now_ms: int, rotates: bool) -> list[str]:
    try:
        ring.tend(now_ms, rotates=rotates)
    except (StorageFailed, InvalidConfig) as error:
        return [str(error)]
    return []


async def _failure_of_ledgers(ledgers: ProcessLedgerStore) -> list[str]:
    # Also when something is wrong with the keys: journals that are not flushed are lost with the
    # power, and grow without end.
    try:
        await ledgers.flush()
    except (StorageFailed, InvalidConfig) as error:
        return [str(error)]
    return []
