"""The API's use cases for commands, on the store of a greenroom that may be running."""

import asyncio
import contextlib
import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import structlog

from greenroom.config.load import default_data, load_config
from greenroom.config.served import new_faults
from greenroom.configuration.layers import LayeredStore
from greenroom.configuration.store import (
    SqlStore,
    default_url,
    shown_url,
    store_exists,
)
from greenroom.configuration.stored_records import FieldSeals, NoSeals, SealedFields
from greenroom.errors import GreenroomError, StorageFailed
from greenroom.keys.sealed_secrets import SECRETS_FILE, SealedSecrets
from greenroom.model.fields import plural
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import CannotStart
from greenroom.web.config_service import ConfigService

# Secrets in the configuration store: sealed after an upgrade, and when their key is replaced.

LOOK_S = 10.0

log = structlog.get_logger(__name__)


def seals_of(data: Path) -> SealedFields:
    return SealedFields(SealedSecrets(data, MonotonicClock().now_ms))


def seals_for_command(data: Path | None, url: str | None) -> FieldSeals:
    """A key of a machine that only runs the command would lose the secrets to all processes: they
    are stored as they are, and a process seals them.
    """
    if url is None or (data is not None and (data / SECRETS_FILE).exists()):
        return seals_of(data or default_data())
    return NoSeals()


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


@contextmanager
def config_service_beside(
    data: Path | None, url: str | None = None, *, existing: bool = False
) -> Iterator[ConfigService]:
    """Makes the store unless it must be `existing`. Raises CannotStart, StorageFailed or
    InvalidConfig.
    """
    folder = data or default_data()
    if existing and (missing := _missing(folder, url)):
        raise CannotStart(missing)
    if url is None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(
                f"cannot use the data directory {folder}: {error.strerror or error}"
            ) from None
    store = SqlStore(url or default_url(folder), seals_for_command(data, url))
    try:
        yield ConfigService(store, MonotonicClock())
    finally:
        store.close()


@contextmanager
def config_service_of(
    file: Path | None, data: Path | None, url: str | None
) -> Iterator[ConfigService]:
    """With the rooms of the configuration file too, and its data directory and store. Raises as
    `config_service_beside`.
    """
    if file is None:
        with config_service_beside(data, url, existing=True) as service:
            yield service
        return
    config = load_config(file)
    with config_service_beside(data or config.data, url or config.store or None) as service:
        layered = LayeredStore(
            service.store,
            lambda: config.documents,
            service.clock.now_ms,
            partial(new_faults, config),
        )
        yield ConfigService(layered, service.clock)


def store_is_there(data: Path | None, url: str | None) -> bool:
    """Raises StorageFailed or InvalidConfig."""
    return not _missing(data or default_data(), url)


def _missing(folder: Path, url: str | None) -> str:
    if store_exists(url or default_url(folder)):
        return ""
    if url is not None:
        return (
            f"there is no configuration of greenroom in {shown_url(url)}: set its store with"
            " --store"
        )
    missing = (
        f"no configuration store found in {folder}"
        if folder.is_dir()
        else f"the data directory {folder} does not exist"
    )
    return f"{missing}: set the data directory of greenroom with --data, or its store with --store"


def author_here() -> str:
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"
