"""In a container that withholds a right, the run says what it leaves out and why; in continuous
integration nothing is left out.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SELECTED = [
    "tests/integration/test_config_store_full_disk.py",
    "-k",
    "nothing_is_lost_on or whole_counts",
]


def run(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A test run on a machine without `unshare`: no disks can be mounted."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith("PYTEST_")
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--no-skips",
        *options,
        *SELECTED,
    ]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=kept | {"PATH": "/nowhere"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_what_cannot_run_here_is_said_at_the_start_and_named_at_the_end(workers: str) -> None:
    done = run(workers)
    assert done.returncode == 0, done.stdout
    reason = "no small disks can be mounted here (user namespaces with mounts)"
    begin, _, end = done.stdout.partition("[100%]")
    assert f"{reason}: tests that need this are left out" in begin
    assert f"3 tests were left out: {reason}" in end
    assert (
        "tests/integration/test_config_store_full_disk.py::test_nothing_is_lost_on[a_disk_that_fills_up]"
        in end
    )


def test_in_continuous_integration_they_run_and_fail() -> None:
    done = run("-n0", CI="true")
    assert done.returncode == 1, done.stdout
    assert "their tests run all the same" in done.stdout
    assert (
        done.stdout.count(
            "FAILED tests/integration/test_config_store_full_disk.py::test_nothing_is_lost_on"
        )
        == 3
    )
    assert "left out:" not in done.stdout
