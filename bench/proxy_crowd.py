"""The crowd of bench/crowd.py against exact limits through a real proxy and two greenroom
processes, each part killed in turn.

    python bench/proxy_crowd.py nginx|haproxy-spoe|envoy [--visitors 5000] [--total 1500] [--rate
    1500] [--kill-every-s 20]

The proxy runs with its configuration of examples/ and asks both processes; they share a Redis with
a log on disk. One greenroom, Redis and the proxy are killed (kill -9) in turn and started again
some seconds later. The origin is the only witness. Exit code 1: a limit was certainly exceeded, a
visitor who stayed was not let in, or one was let in long before another who had come first.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from crowd import Crowd
from proxied_site import PARTS, WITH_TWO, ProxiedSite
from redis_world import free_port

AWAY_S = 2.5
OVERTAKING_S = 15.0
"""Of ninety-nine in a hundred visitors: a try every few seconds, one part away, and the browser's
own wait for it.
"""

ROOM = (
    '[[rooms]]\nname = "shop"\nhost = "*"\ntotal_active_users = {total}\nnew_users_per_minute ='
    " {rate}\nsession_duration = 1\n"
)


async def trouble(site: ProxiedSite, every_s: float) -> None:
    """Kills one part after the other, for ever."""
    for part in cycle(PARTS):
        await asyncio.sleep(every_s)
        print(json.dumps({"killed": part}), flush=True)
        await asyncio.to_thread(site.kill, part)
        await asyncio.sleep(AWAY_S)
        await asyncio.to_thread(site.start, part)


async def story(site: ProxiedSite, crowd: Crowd, every_s: float) -> dict[str, object]:
    """The report of the crowd."""
    troubling = asyncio.create_task(trouble(site, every_s)) if every_s else None
    report = await crowd.run()
    if troubling:
        if troubling.done():
            troubling.result()  # it went wrong
        troubling.cancel()
    return report


def main() -> int:
    """Runs one proxy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("proxy", choices=WITH_TWO)
    parser.add_argument("--visitors", type=int, default=5_000)
    parser.add_argument("--arrive-over-s", type=float, default=40)
    parser.add_argument("--total", type=int, default=1_500)
    parser.add_argument("--rate", type=int, default=1_500)
    parser.add_argument(
        "--for-s",
        type=float,
        default=float("inf"),
        help="stop early; who still waits is not counted as lost",
    )
    parser.add_argument("--kill-every-s", type=float, default=20.0, help="0: nothing is killed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, origin = Path(name), free_port()
        folder.chmod(0o755)
        with ProxiedSite(
            given.proxy, folder, origin, ROOM.format(total=given.total, rate=given.rate)
        ) as site:
            fixed = {
                "host": "127.0.0.1",
                "port": site.port,
                "origin_port": origin,
                "session_s": 60,
                "quitters": 0.0,
                "pid": 0,
            }
            crowd = Crowd(argparse.Namespace(**vars(given), **fixed))
            report = asyncio.run(story(site, crowd, given.kill_every_s))
    print(json.dumps({"proxy": given.proxy, **report}, indent=1))
    exceeded = report["most_active"] > given.total or report["most_in_60_s"] > given.rate  # type: ignore[operator]
    unfair = report["overtaking_p99_s"] > OVERTAKING_S  # type: ignore[operator]
    return int(exceeded or unfair or report["stayed_but_not_let_in"] > 0)  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
