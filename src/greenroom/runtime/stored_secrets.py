"""Secrets in the configuration store: sealed after an upgrade, and when their key is replaced."""

import asyncio
import contextlib
from pathlib import Path

import structlog

from greenroom.config_file.load import default_data
from greenroom.configuration.store import SqlStore, default_url
from greenroom.configuration.stored_records import SealedFields
from greenroom.errors import GreenroomError, StorageFailed
from greenroom.keys.sealed_secrets import SECRETS_FILE, SealedSecrets
from greenroom.model.fields import plural
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import CannotStart

LOOK_S = 10.0

log = structlog.get_logger(__name__)


def seals_of(data: Path) -> SealedFields:
    return SealedFields(SealedSecrets(data, MonotonicClock().now_ms))


def seals_of_command(data: Path | None, url: str | None) -> SealedFields:
    """Seals nothing where only this machine would have the key, which would lose the secrets to all
    processes: these seal them later.
    """
    if url is None or (data is not None and (data / SECRETS_FILE).exists()):
        return seals_of(data or default_data())
    return SealedFields()


async def keep_sealed(store: SqlStore) -> None:
    """Logs what is unreadable here."""
    looked = None
    while True:
        with contextlib.suppress(
            StorageFailed
        ):  # of a store that cannot be reached its follower tells
            revision = await asyncio.to_thread(store.revision)
            if revision != looked:
                await _seal(store)
                looked = revision
        await asyncio.sleep(LOOK_S)


async def _seal(store: SqlStore) -> None:
    try:
        sealed, unreadable = await asyncio.to_thread(store.seal_stored)
    except GreenroomError as error:
        log.warning("stored_secrets_not_sealed", reason=str(error))
        return
    if sealed:
        log.info("stored_secrets_sealed", records=sealed)
    if unreadable:
        log.error("stored_secrets_unreadable", records=unreadable, key_file=SECRETS_FILE)


def rotate_secrets(data: Path, url: str | None) -> str:
    """Returns what was done. Raises CannotStart, StorageFailed or InvalidConfig."""
    if not (data / SECRETS_FILE).exists():
        raise CannotStart(
            f"no {SECRETS_FILE} found in {data}: set the data directory of greenroom with --data"
        )
    box = SealedSecrets(data, MonotonicClock().now_ms)
    store = SqlStore(url or default_url(data), SealedFields(box))
    try:
        store.read()  # a store that cannot be used gets no new key
        key = box.rotate()
        sealed, unreadable = store.seal_stored(again=True)
    finally:
        store.close()
    left = (
        f"; {unreadable} could not be read with the keys of {data} and are left as they were"
        if unreadable
        else ""
    )
    return (
        f"new key {key} written to {data}; {sealed} {plural(sealed, 'record')} sealed with it{left}"
    )
