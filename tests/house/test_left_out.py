"""In a container that withholds a right, the run says what it leaves out and why; in continuous
integration nothing is left out.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DISKS = """
import subprocess

import pytest

@pytest.mark.needs("mount")
@pytest.mark.parametrize("disk", ["full", "slow", "read_only"])
def test_nothing_is_lost_on(disk):
    subprocess.run(["unshare", "--user", "--mount", "true"], check=True)

def test_goes_on():
    pass
"""


def run(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A test run under the rules of this repository on a machine without `unshare`: no disks can be
    mounted.
    """
    (folder / "conftest.py").symlink_to(ROOT / "conftest.py")
    (folder / "test_disks.py").write_text(DISKS)
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT / 'tests/support'}\nmarkers = needs\n"
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith("PYTEST_")
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "--no-skips", *options],
        cwd=folder,
        env=kept | {"PATH": "/nowhere", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_what_cannot_run_here_is_said_at_the_start_and_named_at_the_end(
    workers: str, tmp_path: Path
) -> None:
    done = run(tmp_path, workers)
    assert done.returncode == 0, done.stdout
    reason = "no small disks can be mounted here (user namespaces with mounts)"
    begin, _, end = done.stdout.partition("[100%]")
    assert f"{reason}: tests that need this are left out" in begin
    assert f"3 tests were left out: {reason}" in end
    assert "test_disks.py::test_nothing_is_lost_on[full]" in end
    assert "1 passed" in end


def test_in_continuous_integration_they_run_and_fail(tmp_path: Path) -> None:
    done = run(tmp_path, "-n0", CI="true")
    assert done.returncode == 1, done.stdout
    assert "their tests run all the same" in done.stdout
    assert done.stdout.count("FAILED test_disks.py::test_nothing_is_lost_on") == 3
    assert "left out:" not in done.stdout
