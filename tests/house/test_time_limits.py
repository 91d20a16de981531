"""What hangs is named and does not stop the run (tests/support/time_limits.py)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "support"
HANGING = """
import os
import time

import pytest

@pytest.fixture
def hangs_later():
    yield
    time.sleep(60)

def test_hangs():
    time.sleep(60)

def test_hangs_where_all_is_caught():
    try:
        time.sleep(60)
    except BaseException:
        pass

def test_ends_its_worker():
    os._exit(1)

def test_hangs_in_its_teardown_after_a_failure(hangs_later):
    assert False

def test_goes_on():
    pass
"""


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    (folder / "test_hanging.py").write_text(HANGING)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {SUPPORT}\nmarkers = campaign\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "time_limits"]
    return subprocess.Popen(
        [*command, "-n1", "--dist=loadfile", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_every_hanging_test_fails_once_and_the_next_one_runs(tmp_path: Path) -> None:
    said, _ = start(tmp_path, "-o", "test_limit_s=2").communicate(timeout=100)
    assert "4 failed, 1 passed, 1 error" in said
    for name, where in {
        "hangs": "call",
        "hangs_where_all_is_caught": "call",
        "ends_its_worker": "???",
        "hangs_in_its_teardown_after_a_failure": "teardown",
    }.items():
        assert said.count(f"FAILED test_hanging.py::test_{name} ({where})") == 1, said


def test_a_run_that_is_too_long_names_what_was_running(tmp_path: Path) -> None:
    running = start(tmp_path, "-vv", "-o", "run_limit_s=90", "-m", "not campaign", "-k", "hangs")
    assert running.stdout
    said = ""
    while "::test_hangs" not in said:  # the controller says what begins
        read = os.read(running.stdout.fileno(), 4096).decode()
        assert read, said
        said += read
    running.send_signal(signal.SIGALRM)
    said, _ = running.communicate(timeout=100)
    assert running.returncode == 1
    assert "running now: test_hanging.py::test_hangs" in said
