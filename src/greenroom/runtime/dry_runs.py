"""Dry runs for the dashboard, each in a low-priority process of its own."""

import json
import secrets
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from greenroom.dashboard.parts import DryRunState, ExampleWait
from greenroom.simulator.dry_run import (
    MINUTES,
    VISIT_S,
    VISITORS,
    DryRunRequest,
    crowd_of,
)

LASTS_S, EXAMPLE_LASTS_S = 240.0, 40.0

AT_ONCE = 1
KEPT = 20

WAITING_MAX = 5
EXAMPLES_KEPT = 500

EXAMPLE = ExampleWait(VISITORS, MINUTES, VISIT_S)


class DryRunProcesses:
    def __init__(self) -> None:
        self._runs: OrderedDict[str, DryRunState] = OrderedDict()
        self._examples: OrderedDict[str, ExampleWait] = OrderedDict()
        self._guard = threading.Lock()
        self._free, self._free_for_examples = (
            threading.BoundedSemaphore(AT_ONCE),
            threading.BoundedSemaphore(AT_ONCE),
        )

    def start(self, room_id: str, wanted: Mapping[str, Any]) -> str | None:
        """None while too many wait. Raises InvalidConfig."""
        request = DryRunRequest(**wanted)
        crowd_of(request)
        run_id = secrets.token_hex(16)
        with self._guard:
            if (
                sum(run.results is None and not run.problem for run in self._runs.values())
                >= WAITING_MAX
            ):
                return None
            self._runs[run_id] = DryRunState(room_id, dict(wanted))
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        threading.Thread(target=self._follow, args=(run_id, asdict(request)), daemon=True).start()
        return run_id

    def find(self, run_id: str) -> DryRunState | None:
        with self._guard:
            return self._runs.get(run_id)

    def done(self, room_id: str) -> bool:
        with self._guard:
            return any(one.room_id == room_id and one.results for one in self._runs.values())

    def example(self, settings: Mapping[str, Any]) -> ExampleWait:
        """While too many others wait it is not begun, and the next call tries again."""
        asked = json.dumps(dict(settings), sort_keys=True)
        with self._guard:
            found = self._examples.pop(asked, None)
            if found is None:
                if sum(not one.ended for one in self._examples.values()) >= WAITING_MAX:
                    return EXAMPLE
                threading.Thread(target=self._follow_example, args=(asked,), daemon=True).start()
            self._examples[asked] = found or EXAMPLE
            while len(self._examples) > EXAMPLES_KEPT:
                self._examples.popitem(last=False)
            return self._examples[asked]

    def _follow_example(self, asked: str) -> None:
        found = EXAMPLE
        with self._free_for_examples:
            for news in _simulated({"example": json.loads(asked)}, EXAMPLE_LASTS_S):
                found = EXAMPLE._replace(wait_s=news["seconds"], least=news["least"])
        with self._guard:
            if asked in self._examples:
                self._examples[asked] = found._replace(ended=True)

    def _follow(self, run_id: str, request: Mapping[str, Any]) -> None:
        with self._free:
            for news in _simulated({"dry_run": request}, LASTS_S):
                self._note(run_id, **news)
        run = self.find(run_id)
        if run is not None and run.results is None and not run.problem:
            self._note(
                run_id,
                problem=f"It took longer than {LASTS_S:.0f} seconds. Try fewer visitors, or higher limits.",
            )

    def _note(self, run_id: str, **news: Any) -> None:
        with self._guard:
            if run_id in self._runs:
                self._runs[run_id] = self._runs[run_id]._replace(**news)


def _simulated(request: Mapping[str, Any], lasts_s: float) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "greenroom.runtime.dry_run_process"]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        end = threading.Timer(lasts_s, process.kill)
        end.start()
        assert process.stdin is not None  # noqa: S101  it was asked for
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        for line in process.stdout:
            yield json.loads(line)
        end.cancel()
