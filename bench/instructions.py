"""Instructions of our own code for a request, counted by valgrind: what a busy machine does not
change. Tracing and the measuring of origins, each beside a gateway without.

    python bench/instructions.py [--requests 2000] [--against COMMIT ...]

The gateway of `hot_path.py` runs in one process under callgrind, which needs valgrind and gcc. A
traced request is counted with what sends its spans to a collector, in batches of 512. With
`--against`, that commit's greenroom is counted too, by the benches of now.
"""

import argparse
import contextlib
import ctypes
import gc
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import uvloop
from browser_heads import navigating
from earlier import ROOT
from hot_path import Stepping, asker, heads, rooms, ticket

from greenroom.gateway.documents import Documents

INSIDE, WARM = 500, 2_000
ROUNDS = 3
"""Of each kind; the least counts."""
TRACED = 600
"""Requests: the spans of more do not fit into the library's queue while nothing sends them."""
RARE = 1_000_000
COUNTER = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
OFF, NOT_MEASURED, RARELY, TRACED_ALL = (
    "tracing off", "origin not measured", "tracing on, not traced", "traced",
)  # fmt: skip
SAMPLED = "1 % traced"


class NotMeasured(Documents):
    def answered(self, *_: Any) -> None:  # type: ignore[override]
        """Nothing."""


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


async def run(counter: ctypes.CDLL, requests: int, collector: str) -> None:
    """All kinds after each other, in the process that valgrind counts."""
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        clock = Stepping()
        _, gateway = rooms(Path(folder), 100_000, clock)
        ask, page = asker(gateway, clock), navigating()
        sent = heads(page, [ticket(answer) for answer in ask(heads(page, [b""] * INSIDE))])

        def count(name: str, requests: int, send: Callable[[], object] = lambda: None) -> None:
            batch = [sent[at % len(sent)] for at in range(requests)]
            for _ in range(max(1, WARM // requests)):
                ask(batch)
                send()
            gc.collect()
            counter.begin()
            ask(batch)
            send()
            counter.end(f"{name}={requests}".encode())

        measured, not_measured = gateway.counts.documents, NotMeasured()
        for _ in range(ROUNDS):
            for name, documents in ((OFF, measured), (NOT_MEASURED, not_measured)):
                gateway.counts.documents = documents
                count(name, requests)
        gateway.counts.documents = measured
        with contextlib.suppress(ImportError, AttributeError):  # earlier commits
            from greenroom.runtime.tracing import Tracer
            from greenroom.settings.process import Tracing

            for name, one_in, number in ((RARELY, RARE, requests), (TRACED_ALL, 1, TRACED)):
                tracer = Tracer(Tracing(endpoint=collector, one_in=one_in), "0", gateway.state.now)
                send = tracer.flush
                gateway.state.trace, gateway.state.on_span = tracer.begin, tracer.end
                gateway.state.traced_share = 1 / one_in
                count(name, number, send)
                tracer.close()
        gateway.close()


def counted(source: Path, counter: Path, requests: int, collector: str) -> dict[str, float]:
    """Instructions for a request, by what the gateway does."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--instr-atstart=no", "--cache-sim=no",
                f"--callgrind-out-file={folder}/counted",
                sys.executable, __file__, "--requests", str(requests),
                "--run", str(counter), collector,
            ],
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": f"{source}"},
            stderr=subprocess.PIPE,
            check=True,
        )  # fmt: skip
        found = {}
        for file in Path(folder).iterdir():
            lines = dict(
                line.split(": ", 1) for line in file.read_text().splitlines() if ": " in line
            )
            trigger = lines.get("desc", "").partition("Client Request: ")[2]
            name, _, number = trigger.partition("=")
            if number:
                each = int(lines["totals"]) / int(number)
                found[name] = min(each, found.get(name, each))
    if RARELY in found:
        found[SAMPLED] = found[RARELY] + (found[TRACED_ALL] - found[RARELY]) / 100
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--against", metavar="COMMIT", nargs="*", default=[])
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        counter, collector = options.run
        uvloop.run(run(ctypes.CDLL(counter), options.requests, collector))
        return
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collector = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counter = folder / "counter.so"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", "-xc", "-", "-o", str(counter)],
            input=COUNTER.encode(),
            check=True,
        )
        sources = {"now": ROOT / "src"}
        for commit in options.against:
            source = sources[commit] = folder / str(len(sources))
            source.mkdir()
            packed = subprocess.run(
                ["git", "-C", str(ROOT), "archive", f"{commit}:src"],
                capture_output=True,
                check=True,
            ).stdout
            subprocess.run(["tar", "-x", "-C", str(source)], input=packed, check=True)
        print(f"{'instructions a request':44} {'':>9} {'ratio':>7}")
        first = 0.0
        for source_name, source in sources.items():
            found = counted(source, counter, options.requests, collector)
            first = first or found[OFF]
            for kind, number in sorted(found.items(), key=lambda row: row[1]):
                row = f"{source_name}, {kind}"
                print(f"{row:44} {number:9.0f} {number / first:7.4f}")


if __name__ == "__main__":
    main()
