"""Dry runs for the dashboard: each in a process of its own with a low priority, so that visitors never wait for a simulation.

`python -m greenroom.runtime.dry_runs` is that process: a request as JSON on standard input, lines of JSON on standard output.
"""

import json
import os
import secrets
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from random import Random
from typing import Any

from greenroom.dashboard.services import DryRunState
from greenroom.errors import InvalidConfig
from greenroom.simulator.chance import Streams
from greenroom.simulator.dry_run import DryRunRequest, crowd_of, dry_run

LASTS_S = 240.0
"""A run that takes longer is ended: its crowd is too large for its limits."""

AT_ONCE = 1
KEPT = 20
"""Results that can be looked at; the oldest goes first."""

WAITING_MAX = 5
LOW_PRIORITY = 10


class DryRunProcesses:
    """Starts dry runs, one after another, and keeps what came of them."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, DryRunState] = OrderedDict()
        self._guard = threading.Lock()
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def start(self, room_id: str, wanted: Mapping[str, Any]) -> str | None:
        """The id of a new run of a DryRunRequest in plain values; None while too many wait. Raises InvalidConfig for wrong arrivals."""
        request = DryRunRequest(**wanted)
        crowd_of(request)
        run_id = secrets.token_hex(16)
        with self._guard:
            if sum(run.results is None and not run.problem for run in self._runs.values()) >= WAITING_MAX:
                return None
            self._runs[run_id] = DryRunState(room_id, dict(wanted))
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        threading.Thread(target=self._follow, args=(run_id, json.dumps(asdict(request))), daemon=True).start()
        return run_id

    def find(self, run_id: str) -> DryRunState | None:
        """How far it is, or what came of it; None when there is no such run any more."""
        with self._guard:
            return self._runs.get(run_id)

    def _follow(self, run_id: str, request: str) -> None:
        with self._free:
            command = [sys.executable, "-m", "greenroom.runtime.dry_runs"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  our own program
                end = threading.Timer(LASTS_S, process.kill)
                end.start()
                assert process.stdin is not None  # noqa: S101  it was asked for
                assert process.stdout is not None  # noqa: S101
                process.stdin.write(request)
                process.stdin.close()
                for line in process.stdout:
                    self._note(run_id, **json.loads(line))
                end.cancel()
        run = self.find(run_id)
        if run is not None and run.results is None and not run.problem:
            self._note(run_id, problem=f"It took longer than {LASTS_S:.0f} seconds. Try fewer visitors, or higher limits.")

    def _note(self, run_id: str, **news: Any) -> None:
        with self._guard:
            if run_id in self._runs:
                self._runs[run_id] = self._runs[run_id]._replace(**news)


def _streams() -> Streams:
    return lambda name: Random(f"1/{name}")  # noqa: S311 - a simulation, not a secret


def _say(news: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(news)}\n")
    sys.stdout.flush()


def main() -> None:
    """One dry run."""
    os.nice(LOW_PRIORITY)
    request = DryRunRequest(**json.load(sys.stdin))
    try:
        _say({"results": dry_run(request, _streams, lambda share: _say({"share": share}))})
    except InvalidConfig as error:
        _say({"problem": str(error)})
    except BrokenPipeError:  # the process that asked has ended
        os._exit(1)


if __name__ == "__main__":
    main()
