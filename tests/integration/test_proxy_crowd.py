"""A small crowd through real proxies and two greenroom processes, while each part is killed; `bench/proxy_crowd.py` has the large one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from proxied_site import PARTS, WITH_TWO

ROOT = Path(__file__).resolve().parents[2]
ACTIVE = 40


@pytest.mark.parametrize("proxy", WITH_TWO)
def test_limits_hold_while_greenroom_redis_and_the_proxy_are_killed(proxy: str, tmp_path: Path) -> None:
    options = ["--visitors", "100", "--total", str(ACTIVE), "--rate", "600", "--arrive-over-s", "6", "--for-s", "36", "--kill-every-s", "4"]
    command = [sys.executable, str(ROOT / "bench/proxy_crowd.py"), proxy, *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    killed = [json.loads(line)["killed"] for line in lines if line.startswith('{"killed"')]
    report = json.loads("\n".join(lines[lines.index("{") :]))
    assert killed[:3] == list(PARTS), f"each was gone once: {done.stdout} {done.stderr}"
    assert (report["most_active"], report["let_in"]) == (ACTIVE, ACTIVE), "exactly so many are inside, and sessions outlive every kill"
    assert report["overtaking_p99_s"] < 10, "who came first is let in first, but for what the kills put off"
