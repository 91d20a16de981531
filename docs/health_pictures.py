"""Takes the pictures of health analytics, in a real Chromium in front of a real greenroom with a day
of made-up events of three checks: `python docs/health_pictures.py` (a minute).
"""

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dashboard_pictures import PICTURES, Camera, running

from greenroom.configuration.store import SqlStore, default_url
from greenroom.health.rules.memory import HealthBatch
from greenroom.health.store import HealthStore
from greenroom.health.store import default_url as health_url
from greenroom.model.change import Put
from greenroom.model.health_check import HealthCheck, HttpCheck
from greenroom.model.probe import CheckEvent, ProbeResult, Reason
from greenroom.model.zone import Zone

REGIONS = {"WEU": 18.0, "ENAM": 95.0, "OC": 260.0}
"""With the round trip in milliseconds."""
FAILURES = {
    "shop": ((400, 430, Reason.HTTP_TIMEOUT), (1_000, 1_012, Reason.CODE)),
    "checkout": ((405, 425, Reason.TCP_FAILED), (800, 804, Reason.TLS_UNTRUSTED)),
    "search": ((1_200, 1_203, Reason.BODY),),
}
"""(from, to, reason): minutes before now."""
DAY_MINUTES = 1_440
WINDOW = {"viewport": {"width": 1280, "height": 1180}, "color_scheme": "light"}


def probes(name: str, now_ms: int, chance: random.Random) -> Iterator[CheckEvent]:
    for minute in range(DAY_MINUTES, 0, -1):
        reason = next((why for begin, end, why in FAILURES[name] if begin <= minute < end), "")
        facts = {
            "at_ms": now_ms - minute * 60_000 + chance.randrange(60_000),
            "check_id": name,
            "zone_id": "z",
            "name": name,
            "fqdn": f"{name}.internal",
            "healthy": not reason,
        }
        for region, trip in REGIONS.items():
            ms = trip * chance.lognormvariate(0, 0.15)
            work = chance.lognormvariate(4, 0.4) * (3 if 430 < minute < 470 else 1)
            result = (
                ProbeResult(reason, 503 if reason == Reason.CODE else 0, "10.0.0.7")
                if reason
                else ProbeResult(
                    "", 200, "10.0.0.7", ms, 2 * ms, ms + work, 1.6 * ms + work, 1, ms / 8, ms / 60
                )
            )
            yield CheckEvent(
                region=region, scope="agent", agent=f"{region.lower()}-1", result=result, **facts
            )
        yield CheckEvent(region="Global", scope="overall", result=result, **facts)


def fill(data: Path) -> None:
    data.mkdir()
    checks = [
        HealthCheck(
            id=name,
            name=name,
            address=f"{name}.internal",
            type="HTTPS",
            suspended=True,
            check_regions=tuple(REGIONS),
            http_config=HttpCheck(port=443),
        )
        for name in FAILURES
    ]
    store = SqlStore(default_url(data))
    changes = [Put(Zone(id="z", name="shop.example.com"), ""), *(Put(one, "z") for one in checks)]
    store.write(changes, expected=0, author="pictures", now_ms=int(time.time() * 1000))
    store.close()
    health, now_ms = HealthStore(health_url(data)), int(time.time() * 1000)
    chance = random.Random(1)
    for name in FAILURES:
        health.save(HealthBatch(events=list(probes(name, now_ms, chance))), now_ms)
    health.close()


def main() -> None:
    """Takes them."""
    from dashboard_browser import DashboardBrowser, chromium

    with tempfile.TemporaryDirectory() as temporary:
        fill(Path(temporary) / "data")
        with running(Path(temporary)) as said, chromium() as browser:
            control = said.partition("/sign-in")[0].rpartition(" ")[2]
            camera = Camera(browser.new_page())
            at = DashboardBrowser(browser.new_context(**WINDOW), control)
            at.first_sign_in(said)
            at.go("/health/analytics?span=24h&of=shop")
            camera.take(at.page, PICTURES / "health-analytics.webp")
            at.page.evaluate("document.querySelector('#latency').scrollIntoView({block: 'start'})")
            camera.take(at.page, PICTURES / "health-latency.webp")
            at.page.evaluate(
                "document.querySelector('#panel-regions').scrollIntoView({block: 'start'})"
            )
            camera.take(at.page, PICTURES / "health-regions.webp")
            at.page.locator("#log tbody a").first.click()
            at.page.set_viewport_size({"width": 1180, "height": 760})
            camera.take(at.page, PICTURES / "health-probe.webp")


if __name__ == "__main__":
    main()
