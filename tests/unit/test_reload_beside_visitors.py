"""Reading a changed configuration takes a moment, in which visitors are served."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from greenroom.config_file.load import read_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.source import Stamp
from greenroom.configuration.copy import ConfigCopy
from greenroom.model.configuration import Configuration
from greenroom.runtime.reload import Reloader, StoreFollower

LONG_S = 60.0
"""Never taken, unless the event loop waits for the file."""


class LongFile:
    """A file that is read to its end when a visitor has been served."""

    name = "long.toml"

    def __init__(self) -> None:
        self.served = threading.Event()
        self.config = read_config('origin = "http://127.0.0.1:3000"\n')

    def load(self) -> ProcessConfig:
        assert self.served.wait(LONG_S), "no visitor was served while the file was read"
        return self.config

    def stamp(self) -> Stamp:
        return ()


async def test_visitors_are_served_while_a_configuration_is_read() -> None:
    source, applied = LongFile(), []

    async def apply(config) -> None:
        applied.append(config)

    reloader = Reloader(source, source.config, apply, lambda: 1, ())
    watching = asyncio.create_task(reloader.watch())
    reloader.request()
    while not (reloader.state.reloads or watching.done()):
        await asyncio.sleep(0.01)  # the event loop is free: a visitor would be served now
        source.served.set()
    watching.cancel()
    assert applied == [source.config]


async def test_an_unexpected_fault_is_told_as_a_configuration_that_is_not_in_use() -> None:
    source = LongFile()
    source.served.set()

    async def apply(_config: ProcessConfig) -> None:
        raise KeyError("x")

    reloader = Reloader(source, source.config, apply, lambda: 1, ())
    with pytest.raises(KeyError):
        await reloader.reload()
    assert (reloader.state.reloads, reloader.state.failures) == (0, 1)
    assert [str(problem) for problem in reloader.state.problems] == [
        "file: cannot be used (KeyError): this is a fault of greenroom"
    ]


def test_so_is_one_in_a_revision_of_the_store(tmp_path: Path) -> None:
    store: Any = SimpleNamespace(read=lambda: Configuration(revision=7))
    follower = StoreFollower(store, "store", ConfigCopy(tmp_path / "copy"), lambda: 1)

    async def apply(_known: Configuration) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(follower._look(apply, lambda: 0.0, lambda: False))
    assert follower.state.tried == 7
    assert [str(problem) for problem in follower.state.problems] == [
        "data: cannot be used (KeyError): this is a fault of greenroom"
    ]
