"""A small crowd through real proxies and two greenroom processes, while each part is killed;
`bench/proxy_crowd.py` has the large one.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from proxied_site import PARTS, WITH_TWO

ROOT = Path(__file__).resolve().parents[2]
ACTIVE = 40


def run(
    folder: Path, proxy: str, *options: str, within_s: float
) -> tuple[list[str], dict[str, float]]:
    """What was killed, and the report."""
    command = [sys.executable, str(ROOT / "bench/proxy_crowd.py"), proxy, *options]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=within_s, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return [
        json.loads(line)["killed"] for line in lines if line.startswith('{"killed"')
    ], json.loads("\n".join(lines[lines.index("{") :]))


@pytest.mark.parametrize("proxy", WITH_TWO)
def test_limits_and_order_hold_while_greenroom_redis_and_the_proxy_are_killed(
    proxy: str, tmp_path: Path
) -> None:
    crowd = [
        "--visitors",
        "100",
        "--total",
        str(ACTIVE),
        "--rate",
        "600",
        "--arrive-over-s",
        "5",
        "--for-s",
        "21",
        "--kill-every-s",
        "2.5",
    ]
    killed, report = run(tmp_path, proxy, *crowd, within_s=240)
    assert killed[:3] == list(PARTS), "each was gone once"
    assert (report["most_active"], report["let_in"]) == (ACTIVE, ACTIVE), (
        "exactly so many are inside, and sessions outlive every kill"
    )
    assert report["overtaking_p99_s"] < 10, (
        "who came first is let in first, but for what the kills put off"
    )


@pytest.mark.campaign
@pytest.mark.parametrize("proxy", WITH_TWO)
def test_five_thousand_visitors_are_all_let_in_in_order_while_each_part_is_killed_again_and_again(
    proxy: str, tmp_path: Path
) -> None:
    killed, report = run(tmp_path, proxy, within_s=1_200)
    assert set(killed) == set(PARTS)
    assert (report["let_in"], report["most_active"]) == (5_000, 1_500), (
        "all of them, and the place of each is used"
    )
