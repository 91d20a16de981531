"""Small disks, in a mount namespace of its own where a test's file runs itself as a process."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from machine_rights import NAMESPACE

OWN_MOUNTS = (*NAMESPACE, "--mount")


def mount(*options: str) -> None:
    subprocess.run(["mount", *options], check=True)


def small_disk(disk: Path, size: str) -> None:
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk))


def fill(folder: Path, leave: int = 0) -> Path:
    """Takes all the room but `leave` bytes (whole pages)."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    if leave:
        os.truncate(filler, max(0, filler.stat().st_size - leave))
    return filler


def run_beside(file: str, scenario: str, disk: Path, within: Sequence[str] = OWN_MOUNTS) -> None:
    """Fails with what the process wrote."""
    done = subprocess.run(
        [*within, sys.executable, file, scenario, str(disk)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert done.returncode == 0, done.stderr[-2_000:]
