"""Every alert that a running greenroom raises of itself, each one brought about by what it is for,
and delivered to a real receiver.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from receivers import WebReceiver, until
from redis_world import RedisServer

from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.alert_types import ALERTS
from greenroom.model.change import Put
from greenroom.model.notification import AlertPolicy, Webhook

HERE = '[outbound]\nports = []\nallow = ["127.0.0.1"]\n'
LIMITS = {"greenroom_wait_time": "1", "greenroom_origin_errors": "50"}


def with_policies(data: Path, web: WebReceiver) -> None:
    """A policy for every type of alert, before greenroom begins."""
    data.mkdir(parents=True, exist_ok=True)
    store = SqlStore(default_url(data))
    filters = {name: {"limit": (limit,)} for name, limit in LIMITS.items()}
    policies = [
        AlertPolicy(
            id=name.replace("_", "-"),
            name=name,
            alert_type=name,
            webhook_ids=("w1",),
            filters=filters.get(name, {}),
        )
        for name in ALERTS
    ]
    store.write(
        [Put(Webhook(id="w1", name="Team", url=web.url)), *map(Put, policies)],
        expected=store.read().revision,
        author="test",
        now_ms=time.time_ns() // 1_000_000,
    )
    store.close()


def told(web: WebReceiver, alert_type: str) -> list[dict]:
    return [body for body in web.taken if body["alert_type"] == alert_type]


def wait_for(
    web: WebReceiver,
    alert_type: str,
    event: str = "",
    seconds: float = 90,
    meanwhile: Callable[[], object] = bool,
) -> dict:
    """The alert, once it has arrived; `meanwhile` is what visitors do until then."""
    found: list[dict] = []

    def arrived() -> bool:
        meanwhile()
        found[:] = [body for body in told(web, alert_type) if event in body.get("alert_event", "")]
        return bool(found)

    until(arrived, seconds)
    return found[0]


def at(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat(timespec="seconds")


def room(name: str, path: str, more: str = "", active: int = 1000, minute: int = 1000) -> str:
    return f'[[rooms]]\nname = "{name}"\nhost = "*"\npath = "{path}"\ntotal_active_users = {active}\nnew_users_per_minute = {minute}\n{more}\n'


def event(name: str, start: float, end: float) -> str:
    return f'[[rooms.events]]\nname = "{name}"\nevent_start_time = {at(start)}\nevent_end_time = {at(end)}\n'


def test_queueing_waits_rejections_and_events(greenroom, origin, web) -> None:
    with_policies(greenroom.data, web)
    rooms = [
        room("full", "/full", active=1),
        room("slow", "/slow", minute=1),
        room("closed", "/closed", 'queueing_method = "reject"'),
        room("sale", "/sale", event("now", -1, 60) + event("later", 70, 80)),
        room("soon", "/soon", event("soon", 10, 60)),
    ]
    running = greenroom.config("".join([f'origin = "{origin.url}"\n', HERE, *rooms]))
    closed = wait_for(web, "greenroom_rejecting", "START")
    assert closed["data"]["waiting_room_name"] == "closed"
    assert "turns all new visitors away" in closed["text"]
    started = wait_for(web, "greenroom_event", "START")
    assert (started["data"]["event_name"], started["data"]["waiting_room_name"]) == ("now", "sale")
    soon = wait_for(web, "greenroom_event_soon")
    assert (soon["data"]["event_name"], "alert_event" in soon) == ("soon", False)
    assert not running.visitor().get("/full").waiting
    for _ in range(2):
        running.visitor().take_place("/full")
    queueing = wait_for(web, "greenroom_queueing", "START")
    assert (queueing["data"]["waiting_room_name"], queueing["data"]["active"]) == ("full", 1)
    assert not running.visitor().get("/slow").waiting
    line = [running.visitor() for _ in range(4)]
    for visitor in line:
        visitor.take_place("/slow")
    wait = wait_for(
        web,
        "greenroom_wait_time",
        "START",
        meanwhile=lambda: [visitor.get("/slow") for visitor in line],
    )
    assert wait["data"]["minutes"] > wait["data"]["limit"] == 1

    (greenroom.folder / "greenroom.toml").write_text(
        "".join(
            [
                f'origin = "{origin.url}"\n',
                HERE,
                room("closed", "/closed"),
                room("sale", "/sale", event("now", -60, -1)),
            ]
        )
    )
    opened = wait_for(web, "greenroom_rejecting", "END")
    assert opened["alert_correlation_id"] == closed["alert_correlation_id"]
    ended = wait_for(web, "greenroom_event", "END")
    assert ended["alert_correlation_id"] == started["alert_correlation_id"]
    assert len(told(web, "greenroom_event_soon")) == 1


def test_a_configuration_that_is_refused_and_corrected(greenroom, origin, web) -> None:
    with_policies(greenroom.data, web)
    good = f'origin = "{origin.url}"\n{HERE}{room("main", "/")}'
    greenroom.config(good)
    (greenroom.folder / "greenroom.toml").write_text(good.replace("host", "hots"))
    refused = wait_for(web, "greenroom_config_refused", "START")
    assert "hots" in refused["data"]["problems"]
    (greenroom.folder / "greenroom.toml").write_text(good)
    corrected = wait_for(web, "greenroom_config_refused", "END")
    assert corrected["alert_correlation_id"] == refused["alert_correlation_id"]


def test_an_origin_that_fails(greenroom, web, free_port) -> None:
    with_policies(greenroom.data, web)
    running = greenroom.config(
        f'origin = "http://127.0.0.1:{free_port()}"\n{HERE}{room("main", "/")}'
    )
    visitor = running.visitor()
    for _ in range(25):
        assert visitor.get("/").status == 502
    failing = wait_for(web, "greenroom_origin_errors", "START")
    assert (failing["data"]["percent"], failing["data"]["limit"]) == (100, 50)


def test_a_certificate_near_its_end_and_its_renewal(greenroom, origin, web) -> None:
    with_policies(greenroom.data, web)
    authority = trustme.CA()

    def issue(days: int) -> None:
        made = authority.issue_cert(
            "shop.example.com", not_after=datetime.now(UTC) + timedelta(days=days)
        )
        made.private_key_pem.write_to_path(str(greenroom.folder / "key.pem"))
        made.cert_chain_pems[0].write_to_path(str(greenroom.folder / "cert.pem"))

    issue(3)
    greenroom.config(
        f'origin = "{origin.url}"\n{HERE}[tls]\ncert = "cert.pem"\nkey = "key.pem"\n{room("main", "/")}',
        ready=False,
    )
    late = wait_for(web, "greenroom_certificate_expiring", "START")
    assert (late["data"]["names"], late["data"]["days"]) == ("shop.example.com", 2)
    issue(90)
    renewed = wait_for(web, "greenroom_certificate_expiring", "END")
    assert renewed["alert_correlation_id"] == late["alert_correlation_id"]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    """The Redis of this data center, and the one of all."""
    assert shutil.which("redis-server")
    found = RedisServer(tmp_path / "own"), RedisServer(tmp_path / "all")
    yield found
    for server in found:
        server.stop()


def test_a_data_center_that_is_cut_off_and_a_ledger_that_cannot_be_written(
    greenroom, origin, web, servers
) -> None:
    own, everywhere = servers
    with_policies(greenroom.data, web)
    shared = f'redis = "{own.url}"\nglobal_redis = "{everywhere.url}"\ndatacenter = "fra"\ndatacenters = ["fra"]\n'
    running = greenroom.config(f'origin = "{origin.url}"\n{shared}{HERE}{room("main", "/")}')
    greenroom.eventually(
        lambda: running.metric("greenroom_sync_lock_held") == 1, "it syncs its data center"
    )
    everywhere.kill()
    cut_off = wait_for(web, "greenroom_data_center_cut_off", "START")
    assert cut_off["data"]["data_center"] == "fra"
    everywhere.start()
    assert (
        wait_for(web, "greenroom_data_center_cut_off", "END")["alert_correlation_id"]
        == cut_off["alert_correlation_id"]
    )
    own.kill()
    running.visitor().get("/")
    stopped = wait_for(web, "greenroom_admissions_stopped", "START")
    assert stopped["data"]["waiting_room_name"] == "main"
    lines = running.wait_until_printed("admissions_stopped").output.splitlines()
    (line,) = [line for line in lines if "admissions_stopped" in line and "[error" in line]
    assert f"127.0.0.1:{own.port}" in line, "operators read which Redis it is"
    assert "journal" not in line
    own.start()
    assert (
        wait_for(web, "greenroom_admissions_stopped", "END")["alert_correlation_id"]
        == stopped["alert_correlation_id"]
    )
