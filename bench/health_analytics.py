"""What health analytics cost with 31 days of 200 checks that three regions probe every minute:
server time of every page that reads them.

    python bench/health_analytics.py [--checks 200] [--times 7]

Writes what 31 days would leave: the newest EVENTS_KEPT events, hourly sums of all, and days; every
twentieth check fails for an hour a day. Then starts a real greenroom, signs in, and asks for the
pages over the loopback interface. Prints milliseconds from the request to the last byte, and ends
with an error when a median is above LIMIT_MS.
"""

import argparse
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dashboard import serving

from greenroom.configuration.store import SqlStore, default_url
from greenroom.health import hour_store
from greenroom.health.rules.memory import HOUR_KEY, HOUR_MS, TIMES
from greenroom.health.rules.sketch import Sketch
from greenroom.health.store import DAY_MS, EVENTS_KEPT, EVENTS_MS, HealthStore, _day
from greenroom.health.store import default_url as health_url
from greenroom.model.change import Change, Put
from greenroom.model.health_check import HealthCheck, HttpCheck
from greenroom.model.probe import Reason
from greenroom.model.zone import Zone

LIMIT_MS = 200.0
MINUTE_MS = 60_000
REGIONS = ("WEU", "ENAM", "OC")
PLACES = (*((region, "agent", f"agent-{region}") for region in REGIONS), ("Global", "overall", ""))


def fill(data: Path, checks: int) -> None:
    """Suspended checks: what they have found is written below."""
    changes: list[Change] = [Put(Zone(id="z0", name="z0.example", limit_floor=1), "")]
    changes += [
        Put(
            HealthCheck(
                id=f"h{at}",
                name=f"check-{at}",
                address="127.0.0.1",
                suspended=True,
                check_regions=REGIONS,
                http_config=HttpCheck(port=9),
            ),
            "z0",
        )
        for at in range(checks)
    ]
    store = SqlStore(default_url(data))
    store.write(changes, expected=0, author="bench", now_ms=int(time.time() * 1000))
    store.close()


def failing(check: int, at_ms: int) -> bool:
    return check % 20 == 0 and at_ms // HOUR_MS % 24 == 9


def facts(check: int, at_ms: int) -> tuple[int, str, int]:
    """Healthy, reason and code."""
    return (0, str(Reason.CODE), 503) if failing(check, at_ms) else (1, "", 200)


def hours(checks: int, begin_ms: int, end_ms: int) -> Iterator[tuple[object, ...]]:
    chance = random.Random(1)
    made = [
        hour_store.packed(
            [Sketch.of(chance.lognormvariate(3, 0.4) for _ in range(60)) for _ in TIMES]
        )
        for _ in range(50)
    ]
    for check in range(checks):
        for at_ms in range(begin_ms, end_ms, HOUR_MS):
            healthy, reason, code = facts(check, at_ms)
            for region, scope, agent in PLACES:
                key = (f"h{check}", at_ms, region, scope, int(bool(agent)), healthy, reason, code)
                own = ("z0", f"check-{check}", "127.0.0.1", "" if healthy else "200")
                yield (*key, "127.0.0.1", 0, *own, 60, chance.choice(made))


def events(checks: int, end_ms: int) -> Iterator[tuple[object, ...]]:
    """Oldest first."""
    chance = random.Random(2)
    minutes = EVENTS_KEPT // checks // len(PLACES)
    for minute in range(minutes, 0, -1):
        at_ms = end_ms - minute * MINUTE_MS
        for check in range(checks):
            healthy, reason, code = facts(check, at_ms)
            for region, scope, agent in PLACES:
                ms = chance.uniform(5, 50)
                own = (f"h{check}", "z0", f"check-{check}", "127.0.0.1", region, scope, "", agent)
                yield (
                    at_ms + check * 250, *own, reason, "127.0.0.1", healthy, 0, code, 1, ms, ms,
                    3 * ms, 4 * ms,
                )  # fmt: skip


def record(data: Path, checks: int) -> int:
    """The number of a probe of the first check."""
    store = HealthStore(health_url(data))
    store.load()
    store.close()
    end_ms = int(time.time() * 1000)
    begin_ms = (end_ms - EVENTS_MS) // HOUR_MS * HOUR_MS
    columns = (
        "at_ms, check_id, zone_id, name, fqdn, region, scope, expected, agent, reason, address,"
        " healthy, changed, code, tries, tcp_ms, tls_ms, ttfb_ms, rtt_ms"
    )
    summed = ", ".join((*HOUR_KEY, "zone_id", "name", "fqdn", "expected", "count", "times"))
    with sqlite3.connect(data / "health.db") as connection:
        marks = ",".join("?" * 19)
        connection.executemany(
            f"INSERT INTO health_events ({columns}) VALUES ({marks})", events(checks, end_ms)
        )
        marks = ",".join("?" * 16)
        connection.executemany(
            f"INSERT INTO health_hours ({summed}) VALUES ({marks})",
            hours(checks, begin_ms, end_ms),
        )
        connection.executemany(
            "INSERT INTO health_days VALUES (?,?,?,?,?)", days(checks, begin_ms, end_ms)
        )
        number = connection.execute("SELECT max(number) FROM health_events").fetchone()[0]
    connection.close()
    return int(number) // len(PLACES) * len(PLACES) - 4 * checks + 1


def days(checks: int, begin_ms: int, end_ms: int) -> Iterator[tuple[object, ...]]:
    for check in range(checks):
        for at_ms in range(begin_ms // DAY_MS * DAY_MS, end_ms, DAY_MS):
            bad = 60 if check % 20 == 0 else 0
            yield f"h{check}", _day(at_ms), 1_440 - bad, 1_440, 20.0 * (1_440 - bad)


def paths(checks: int, probe: int) -> list[str]:
    page = "/health/analytics"
    compared = ",".join(f"h{at * 20 % checks}" for at in range(6))
    found = [f"{page}?span={span}" for span in ("1h", "6h", "24h", "7d", "31d")]
    found += [f"{page}?span={span}&check={compared}&of=h0" for span in ("24h", "31d")]
    found += [
        f"{page}?span=31d&check={compared}&{filters}"
        for filters in (
            "status=Unhealthy",
            "reason=Response+code+mismatch+error",
            "reason=TCP+Timeout",
            "region=OC",
            "changes=1",
            f"before={int(time.time() * 1000) - 40 * HOUR_MS}-1",
        )
    ]
    return [
        *found,
        "/health",
        "/zones/z0/health/h0",
        f"/zones/z0/health/h0/probes/{probe}",
    ]


def cpu_ms(pid: int) -> float:
    """Of the whole process, also of what it does beside the requests."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--checks", type=int, default=200)
    parser.add_argument("--times", type=int, default=7)
    asked = parser.parse_args()
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        fill(data, asked.checks)
        probe = record(data, asked.checks)
        print(f"health.db: {(data / 'health.db').stat().st_size >> 20} MB")
        with serving(data) as browser:
            print(
                f"{'median':>7} {'worst':>7} {'first':>7} {'CPU':>7}  status  page (milliseconds)"
            )
            for path in paths(asked.checks, probe):
                status, _, first = browser.get(path)
                before = cpu_ms(browser.pid)
                took = [browser.get(path)[2] for _ in range(asked.times)]
                cpu = (cpu_ms(browser.pid) - before) / asked.times
                median = statistics.median(took)
                figures = f"{median:7.1f} {max(took):7.1f} {first:7.1f} {cpu:7.1f}"
                print(f"{figures}  {status:6}  {path}", flush=True)
                if median > LIMIT_MS:
                    slow.append(path)
    sys.exit(f"slower than {LIMIT_MS:.0f} ms: {', '.join(slow)}" if slow else 0)


if __name__ == "__main__":
    main()
