"""Ctrl-C ends greenroom without a word of its libraries, also when one was loaded before the memory
of the start was set aside.
"""

import signal
import subprocess
import sys
from pathlib import Path

SLOW_START = """
import duckdb, sys
from greenroom.cli import main
sys.argv = ["greenroom", *sys.argv[1:]]
main()
"""
"""On a slow machine the store of analytics has loaded DuckDB before the start is over."""


def test_duckdb_reports_no_leaks_when_the_process_ends(free_port, tmp_path: Path) -> None:
    limits = ("--total-active-users", "1", "--new-users-per-minute", "1")
    places = (
        "--listen",
        f"127.0.0.1:{free_port()}",
        "--control",
        f"127.0.0.1:{free_port()}",
        "--data",
        str(tmp_path / "data"),
    )
    command = [
        sys.executable,
        "-c",
        SLOW_START,
        "serve",
        "--origin",
        "http://127.0.0.1:9",
        *limits,
        *places,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert any(line == "ready\n" for line in running.stdout)
        running.send_signal(signal.SIGINT)
        said, complained = running.communicate(timeout=60)
    assert (said, running.returncode) == ("stopped\n", 0)
    assert "leak" not in complained
