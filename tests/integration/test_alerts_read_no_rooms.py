"""What a process knows is read without end for its alerts: that must not count as an operator who
looks, or all processes read Redis.
"""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from greenroom.alerts.watcher import Watcher
from greenroom.config_file.source import FileSource
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.ledger_store import ProcessLedgerStore
from greenroom.runtime.parts import Listeners
from greenroom.runtime.process import Process


async def test_looking_for_alerts_asks_for_no_figures_and_an_operator_does(tmp_path: Path) -> None:
    asked: list[str] = []
    ledgers = SimpleNamespace(
        open={},
        closed=dict,
        keep_figures_fresh=lambda: asked.append("figures"),
        sync_state=lambda: None,
    )
    path = tmp_path / "greenroom.toml"
    path.write_text(f'origin = "http://127.0.0.1:1"\ndata = "{tmp_path / "data"}"\n')
    process = Process(FileSource(path), lambda _: None)
    with contextlib.ExitStack() as undo:
        data = DataDir(tmp_path / "data")
        undo.callback(data.release)
        await process._begin_with_store(data, Listeners(None, None, None), undo)
        process._ledgers = cast(ProcessLedgerStore, ledgers)
        notifications = process._notifications
        assert notifications is not None
        await Watcher(notifications._picture, notifications.outbox, lambda: 0).look_once()
        assert asked == [], "alerts look at rooms every second"
        process.state()
        assert asked == ["figures"], "an operator who looks gets fresh ones"
