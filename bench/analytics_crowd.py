"""Do analytics say what a crowd saw? Real visitors with cookies against a real greenroom; both
records side by side.

    nice .venv/bin/python bench/analytics_crowd.py [--visitors 5000] [--total 2000] [--rate 1500]

It takes about five minutes. The crowd of bench/crowd.py notes for each visitor when it first asked
and when it first saw the application; greenroom is stopped in order, and its store of analytics is
asked. Counts must be the same, times waited within 2 %.
"""

import argparse
import asyncio
import json
import math
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from crowd import Crowd

from greenroom.analytics.question import Question, Wanted
from greenroom.runtime.analytics import FILE, open_analytics_file

GREENROOM = Path(sys.executable).with_name("greenroom")
AIM = 0.02
SUMS = ("newUsersPerMinute", "usersWaited", "requestsHeld")
TIMES = {50: "totalTimeWaitedP50", 95: "totalTimeWaitedP95"}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def serve(data: str, ports: dict[str, int], asked: argparse.Namespace) -> subprocess.Popen[bytes]:
    places = [
        "--listen",
        f"127.0.0.1:{ports['listen']}",
        "--control",
        f"127.0.0.1:{ports['control']}",
        "--data",
        data,
    ]
    limits = [
        "--total-active-users",
        str(asked.total),
        "--new-users-per-minute",
        str(asked.rate),
        "--session-duration",
        "1",
    ]
    command = [
        GREENROOM,
        "serve",
        "--origin",
        f"http://127.0.0.1:{ports['origin']}",
        *places,
        *limits,
    ]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1_200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports['control']}/readyz", timeout=1):
                return running
        except OSError:
            time.sleep(0.1)
    running.kill()
    raise SystemExit("greenroom did not get ready")


def analytics(data: str) -> dict[str, float]:
    wanted = [
        *(Wanted("sum", name) for name in SUMS),
        *(Wanted("percentile", name) for name in TIMES.values()),
    ]
    keeper = open_analytics_file(Path(data) / FILE)
    try:
        (row,) = keeper.answer(Question(0, 1 << 32, metrics=tuple(wanted))).rows
    finally:
        keeper.close()
    return {each.metric: float(row[tuple(each)] or 0) for each in wanted}


def nearest_rank(values: list[float], percent: int) -> float:
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]


def say(what: str, seen: float, told: float, aim: float) -> bool:
    off = abs(told - seen) / seen if seen else float(told != 0)
    good = off <= aim
    goal = f"aim {100 * aim:.0f} %{'' if good else '   MISSED'}"
    print(
        f"{what:22} crowd {seen:10.2f}   analytics {told:10.2f}   differ by {100 * off:.2f} %,"
        f" {goal}"
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visitors", type=int, default=5_000)
    parser.add_argument("--total", type=int, default=2_000)
    parser.add_argument("--rate", type=int, default=1_500)
    asked = parser.parse_args()
    ports = {name: free_port() for name in ("listen", "control", "origin")}
    options: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": ports["listen"],
        "origin_port": ports["origin"],
        "visitors": asked.visitors,
    }
    options |= {
        "arrive_over_s": 60.0,
        "quitters": 0.0,
        "total": asked.total,
        "rate": asked.rate,
        "session_s": 60.0,
    }
    crowd = Crowd(argparse.Namespace(**options, for_s=float("inf"), pid=0, seed=1))
    with tempfile.TemporaryDirectory() as data:
        running = serve(data, ports, asked)
        try:
            print(json.dumps(asyncio.run(crowd.run())))
        finally:
            running.terminate()
            running.wait(60)
        told = analytics(data)
    waited = sorted(
        visitor.entered - visitor.arrived for visitor in crowd.visitors if visitor.waited
    )
    good = [
        say(
            "visitors let in",
            sum(visitor.entered > 0 for visitor in crowd.visitors),
            told["newUsersPerMinute"],
            0.0,
        ),
        say("of these from the line", len(waited), told["usersWaited"], 0.0),
        say("requests held", crowd.held, told["requestsHeld"], 0.0),
        *(
            say(f"time waited p{percent}, s", nearest_rank(waited, percent), told[name], AIM)
            for percent, name in TIMES.items()
        ),
    ]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
