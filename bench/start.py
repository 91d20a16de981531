"""How long a start takes: from the command to the first answer, with nobody on the books and with
100,000 visitors.

    python bench/start.py [--visitors 100000] [--rounds 7]

The books are those of a greenroom that was killed: a journal of 95 % places and 5 % sessions.
Medians of wall time.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from greenroom.admission.records import ADMIT, PLACE, pack
from greenroom.cli.commands import ROOM_NAME
from greenroom.config_file.documents import room_id
from greenroom.ledgers.journal import FileJournal
from greenroom.model.visit import make_key

GREENROOM = Path(sys.executable).with_name("greenroom")
LIMITS = ["--total-active-users", "10000", "--new-users-per-minute", "10000"]


def start(data: Path) -> float:
    """Seconds until it is ready."""
    began = time.monotonic()
    places = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(data)]
    with subprocess.Popen(
        [GREENROOM, "serve", "--origin", "http://127.0.0.1:9", *LIMITS, *places],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("ready"):
                took = time.monotonic() - began
                process.kill()
                return took
    sys.exit("it did not start")


def fill(journal: Path, visitors: int) -> None:
    """Appends to the journal of a room, as so many visitors would have."""
    now_ms = int(time.time() * 1000)
    records = [
        pack(PLACE, os.urandom(12), make_key(now_ms - random.randrange(600_000), 0))
        for _ in range(visitors * 95 // 100)
    ]
    records += [
        pack(ADMIT, os.urandom(12), now_ms - random.randrange(50_000))
        for _ in range(visitors - len(records))
    ]
    written = FileJournal(journal)
    list(written.replay())
    for first in range(0, len(records), 1_000):
        written.append(b"".join(records[first : first + 1_000]))
    written.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visitors", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder) / "empty", Path(folder) / "full"
        start(empty)
        shutil.copytree(empty, full)
        fill(full / "rooms" / f"{room_id(ROOM_NAME)}.journal", options.visitors)
        for name, data in (("nobody", empty), (f"{options.visitors:,} visitors", full)):
            took = [start(data) for _ in range(options.rounds)]
            print(
                f"{name:20} ready after {statistics.median(took):.2f} s, at most {max(took):.2f} s"
            )


if __name__ == "__main__":
    main()
