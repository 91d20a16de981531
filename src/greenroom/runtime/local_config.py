"""The API's use cases for commands, on the store of a greenroom that may be running."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from greenroom.config_file.load import default_data, load_config
from greenroom.config_file.served import new_faults
from greenroom.configuration.layers import LayeredStore
from greenroom.configuration.store import (
    SqlStore,
    default_url,
    shown_url,
    store_exists,
)
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.stored_secrets import seals_of_command
from greenroom.web.config_service import ConfigService


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
    store = SqlStore(url or default_url(folder), seals_of_command(data, url))
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
