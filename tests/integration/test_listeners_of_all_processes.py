"""No process forwards visitors to a listener of another one, and no control listener answers what
came through a gateway.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_rig import ACCOUNT, Api, create_token
from config_material import zone
from ports import free_port
from starlette.responses import PlainTextResponse

from greenroom.alerts.mail import Sending
from greenroom.config_file.load import load_config
from greenroom.configuration.store import SqlStore, default_url
from greenroom.dashboard.parts import FETCH_LOGO
from greenroom.gateway.wire.hop import marked_line
from greenroom.model.change import Put
from greenroom.outbound import OutboundPolicy, OutboundRefused
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.control_plane import control_listener
from greenroom.runtime.dashboard import Running, open_dashboard
from greenroom.runtime.listener import bind, bound
from greenroom.settings.process import Address

OUTBOUND = '[outbound]\nports = []\nallow = ["127.0.0.0/8"]\n'
HERE = ("127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]")


def configured(folder: Path) -> Path:
    file = folder / "greenroom.toml"
    file.write_text('data = "."\norigin = "http://192.0.2.1"\ntrusted_proxies = ["127.0.0.1"]\n')
    return file


def saved(api: Api, url: str) -> int:
    return api.ask("POST", "/zones", {"name": "zone.example", "greenroom": {"origin": url}}).status


def stored(url: str, origin: str) -> int:
    """Written past the validation, as by an older version."""
    store = SqlStore(url)
    put = Put(zone("z1", name="zone.example", origin=origin))
    return store.write([put], expected=store.revision(), author="test", now_ms=1).revision


def test_no_worker_takes_a_listener_of_another_one_as_an_origin(
    greenroom: Any, origin: Any
) -> None:
    control = free_port(and_at=1)
    options = ("--origin", origin.url, "--total-active-users", "3", "--new-users-per-minute", "9")
    places = ("--listen", "127.0.0.1:0", "--data", str(greenroom.data))
    running = greenroom.run(
        "serve", *options, *places, "--control", f"127.0.0.1:{control}", "--workers", "2"
    )
    greenroom.eventually(
        lambda: running.output.count(": ready") == 2, lambda: running.output, within_s=60
    )
    token = create_token(greenroom.data, "zones", "--scope", "edit")
    ports = (control, control + 1)
    statuses = {
        (port, host, other): saved(Api(("127.0.0.1", port), token), f"http://{host}:{other}")
        for port in ports
        for other in ports
        for host in HERE
    }
    assert statuses == dict.fromkeys(statuses, 400)
    revision = stored(default_url(greenroom.data), f"http://127.0.0.1:{control + 1}")
    assert running.stop() == 0
    again = greenroom.run(
        "serve", *options, *places, "--control", f"127.0.0.1:{control}", "--workers", "2"
    )
    greenroom.eventually(
        lambda: again.output.count(": ready") == 2, lambda: again.output, within_s=60
    )
    for port in ports:
        figures = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert f"greenroom_config_store_revision {revision}.0\n" in figures
    assert again.stop() == 0


class Two:
    """Two edges on one store, and who writes to it."""

    def __init__(self, greenroom: Any, origin: Any) -> None:
        self.greenroom = greenroom
        self.url = default_url(greenroom.data)
        self.one = greenroom.config(f'origin = "{origin.url}"\n{OUTBOUND}')
        file = greenroom.folder / "other.toml"
        file.write_text(f'origin = "{origin.url}"\n')
        places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
        data = ("--data", str(greenroom.folder / "other"), "--store", self.url)
        self.other = greenroom.run("serve", "--config", str(file), *places, *data)
        self.other.wait_until_ready()
        token = create_token(greenroom.data, "all", "--scope", "edit")
        self.api = Api(self.one.control, token)
        self.control = f"http://127.0.0.1:{self.other.control[1]}"


@pytest.fixture
def two(greenroom: Any, origin: Any) -> Two:
    return Two(greenroom, origin)


def test_an_edge_judges_origins_by_the_listeners_of_all_edges_on_its_store(two: Two) -> None:
    host, port = two.other.address
    assert saved(two.api, two.control) == 400
    assert saved(two.api, f"http://{host}:{port}") == 400
    assert two.other.stop() == 0
    assert saved(two.api, two.control) == 200, "an edge that has ended has no listeners"


def test_a_webhook_to_a_listener_of_another_edge_is_refused(two: Two) -> None:
    wanted = {"name": "Team", "url": f"{two.control}/healthz"}
    url = f"/accounts/{ACCOUNT}/alerting/v3/destinations/webhooks"
    refused = two.api.ask("POST", url, wanted)
    assert refused.status == 400
    assert "is a listener of greenroom itself" in refused.body["errors"][0]["message"]


def test_a_logo_from_an_own_listener_is_refused(tmp_path: Path) -> None:
    config = replace(
        load_config(configured(tmp_path)),
        sending=Sending(outbound=OutboundPolicy(ports=(), allowed=("127.0.0.0/8",))),
    )
    nothing: Any = None
    running = Running(nothing, nothing, nothing, None, None, None)
    dashboard = open_dashboard(
        nothing,
        nothing,
        MonotonicClock(),
        running,
        {},
        lambda: config,
        lambda: [("127.0.0.1", 8081)],
    )
    fetch_logo = dashboard.parts.find(FETCH_LOGO)
    assert fetch_logo
    with pytest.raises(OutboundRefused, match="a listener of greenroom itself"):
        fetch_logo("http://127.0.0.1:8081/logo.png")


def test_an_origin_that_became_a_listener_later_is_not_connected_to(two: Two) -> None:
    revision = stored(two.url, two.control)
    two.greenroom.eventually(
        lambda: two.one.metric("greenroom_config_store_revision") == revision, two.one.output
    )
    url, seen = f"http://127.0.0.1:{two.one.address[1]}/status", set[int]()

    def status() -> int:
        answer = httpx.get(url, headers={"Host": "zone.example"})
        assert "version" not in answer.text
        seen.add(answer.status_code)
        return answer.status_code

    two.greenroom.eventually(lambda: status() == 502, "the first edge has read of the second")
    assert seen <= {502, 421}, "before that the control listener refuses what a gateway forwarded"


def test_a_control_listener_refuses_what_came_through_a_gateway(tmp_path: Path) -> None:
    config = load_config(configured(tmp_path))
    mark = marked_line([b"a-cdn"]).decode().partition(": ")[2]

    async def story() -> list[int]:
        listener = control_listener(
            PlainTextResponse("figures"), lambda: config, bind(Address("127.0.0.1", 0), "a test")
        )
        await listener.start()
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                url = f"http://{bound(listener._listener)}/status"
                return [
                    (await client.get(url, headers={"Host": host, "CDN-Loop": loop})).status_code
                    for host in ("127.0.0.1", "ops.example.com")
                    for loop in (mark, mark.upper(), "a-cdn")
                ]
        finally:
            await listener.close()

    assert asyncio.run(story()) == [421, 421, 200] * 2
