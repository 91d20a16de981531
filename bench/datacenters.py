"""Three data centers for real, while nearly everything in them dies: do the limits hold, and does
everybody keep the place?

    python bench/datacenters.py                          # 5,000 visitors, about six minutes
    python bench/datacenters.py --visitors 300 --total 200 --rate 240 --faults-at 8 --every 8 --down
    3 --come 50 --seconds 60 --enough 0.6

Starts three data centers (a Redis and two edges each), a global Redis and an origin on this
machine, and sends a crowd with cookies. While it stands in line, an edge, the coordinator, a data
center's Redis and the global Redis are killed (kill -9; what died is started again from its disk),
and one data center is cut off. The origin judges: at no moment more active visitors than allowed,
in no sixty seconds more admissions, nobody inside thrown out, nobody in line overtaken by more than
the time of a fault. Exits 1 otherwise.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from many_data_centers import World
from patient_crowd import Crowd, Verdict, judge

SESSION_S = 60.0
ROOM = (
    'name = "shop"\nhost = "*"\nsession_duration = 1\ntotal_active_users ='
    " {total}\nnew_users_per_minute = {rate}\n"
)
LOST_PLACE_S = 60.0
"""Overtaken by somebody who came so much later: longer than any fault here with a refresh (20 s) on
top.
"""


async def edge_dies(world: World, down_s: float) -> str:
    edge = next(one for one in world.of("dc0") if one is not world.holder())
    edge.kill()
    await asyncio.sleep(down_s)
    edge.start()
    return "dc0: one of two edges killed, and started again"


async def coordinator_dies(world: World, down_s: float) -> str:
    edge = world.holder()
    if edge is None:
        return "there was no leader"
    died = time.monotonic()
    edge.kill()
    await world.until(lambda: world.holder() not in (None, edge), "another coordinator", 20)
    took_s = time.monotonic() - died
    await asyncio.sleep(max(0.0, down_s - took_s))
    edge.start()
    return f"{edge.data_center}: the edge that led killed; another one led {took_s:.1f} s later"


async def redis_dies(world: World, down_s: float) -> str:
    await world.kill_redis("dc1", down_s)
    return f"dc1: Redis killed, back from its disk after {down_s:.0f} s"


async def cut_off(world: World, down_s: float) -> str:
    world.links["dc2"].cut()
    await asyncio.sleep(2 * down_s)
    world.links["dc2"].mend()
    return f"dc2: cut off for {2 * down_s:.0f} s"


async def global_redis_dies(world: World, down_s: float) -> str:
    await world.kill_redis("global", down_s)
    return f"global Redis killed, back from its disk after {down_s:.0f} s"


STEPS = (edge_dies, coordinator_dies, redis_dies, cut_off, global_redis_dies)


async def faults(
    world: World, began: float, options: argparse.Namespace, told: list[tuple[float, str]]
) -> None:
    for number, step in enumerate(STEPS):
        await asyncio.sleep(
            max(0.0, began + options.faults_at + number * options.every - time.monotonic())
        )
        at = time.monotonic() - began
        told.append((at, await step(world, options.down)))
        print(f"{at:6.0f} s  {told[-1][1]}", flush=True)


async def campaign(options: argparse.Namespace, folder: Path) -> Verdict:
    world = World(
        folder, data_centers=3, edges=2, room=ROOM.format(total=options.total, rate=options.rate)
    )
    try:
        await world.start()
        print(
            f"{options.visitors} visitors come to {len(world.names)} data centers with"
            f" {len(world.edges)} edges",
            flush=True,
        )
        crowd = Crowd(
            world,
            options.visitors,
            options.come,
            SESSION_S,
            options.seed,
            options.pages,
            (2.0, 12.0),
        )
        told: list[tuple[float, str]] = []
        problem = asyncio.create_task(faults(world, crowd.began, options, told))
        await crowd.run(crowd.began + options.seconds)
        ended = time.monotonic()
        await problem
        verdict = judge(crowd, world.origin, ended)
        show(options, crowd, verdict, ended)
        return verdict
    finally:
        await world.close()


def show(options: argparse.Namespace, crowd: Crowd, verdict: Verdict, ended: float) -> None:
    overtaken = sorted(verdict.overtaken_s) or [0.0]
    print(
        f"\n{ended - crowd.began:.0f} s: {verdict.entered} of {options.visitors} got in,"
        f" {verdict.never} still wait"
    )
    print(f"active at once        at most {verdict.most_active:6} of {options.total}")
    print(f"admissions in 60 s    at most {verdict.most_a_minute:6} of {options.rate}")
    print(
        f"thrown out            {len(verdict.thrown_out)}, and {verdict.held_inside} pages held"
        " while their Redis was dead"
    )
    for name, moment in verdict.thrown_out[:10]:
        print(f"  in {name}, at {moment:.1f} s")
    p50, p99 = (overtaken[int(part * (len(overtaken) - 1))] for part in (0.5, 0.99))
    print(
        f"overtaken by          p50 {p50:.1f} s, p99 {p99:.1f} s, most {overtaken[-1]:.1f} s (who"
        " came so much later got in earlier)"
    )
    print("admissions in ten seconds:")
    for name, counts in verdict.per_10_s.items():
        print(
            f"  {name}  "
            + " ".join(f"{counts[slot]:4}" for slot in range(max(counts, default=0) + 1))
        )


def failures(options: argparse.Namespace, verdict: Verdict) -> list[str]:
    lost = sum(1 for seconds in verdict.overtaken_s if seconds > LOST_PLACE_S)
    checks = {
        "more active visitors than allowed": verdict.most_active > options.total,
        "more admissions in a minute than allowed": verdict.most_a_minute > options.rate,
        "visitors with a living session were held": len(verdict.thrown_out) > 0,
        f"{lost} lost their place": lost > 0,
        "too few got in": verdict.entered < options.enough * options.visitors,
    }
    return [what for what, happened in checks.items() if happened]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--visitors", type=int, default=5_000)
    made.add_argument("--total", type=int, default=2_000)
    made.add_argument("--rate", type=int, default=1_500)
    made.add_argument("--come", type=float, default=60, help="seconds within which all come")
    made.add_argument("--pages", type=int, default=8, help="at most so many pages each")
    made.add_argument("--faults-at", type=float, default=40)
    made.add_argument("--every", type=float, default=40)
    made.add_argument("--down", type=float, default=8, help="seconds that what died stays dead")
    made.add_argument(
        "--seconds", type=float, default=420, help="the end, when not everybody has got in before"
    )
    made.add_argument(
        "--enough", type=float, default=1.0, help="part of the visitors that must have got in"
    )
    made.add_argument("--seed", type=int, default=1)
    made.add_argument(
        "--keep", metavar="DIR", help="a new directory for all logs and data, kept at the end"
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="greenroom-") as folder:
        verdict = asyncio.run(campaign(options, Path(options.keep or folder)))
    found = failures(options, verdict)
    print("ok" if not found else "FAILED: " + "; ".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
