"""The use cases of the API for commands, on the store of a greenroom that may be running."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from greenroom.config.load import default_data
from greenroom.control.config_service import ConfigService
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.stored_secrets import seals_for_command
from greenroom.stores.sql import SqlStore, default_url


@contextmanager
def config_service_beside(data: Path | None, url: str | None = None) -> Iterator[ConfigService]:
    """The store at `url`, or the one in the data directory. Raises CannotStart, StorageFailed or InvalidConfig."""
    folder = data or default_data()
    if url is None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(f"cannot use the data directory {folder}: {error.strerror or error}") from None
    store = SqlStore(url or default_url(folder), seals_for_command(data, url))
    try:
        yield ConfigService(store, MonotonicClock())
    finally:
        store.close()


def author_here() -> str:
    """Who is at the machine, for the audit log."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"
