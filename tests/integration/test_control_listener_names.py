"""A web site whose name suddenly leads to this machine (DNS rebinding) reads nothing of the control
listener.
"""

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse

from greenroom.config_file.load import load_config
from greenroom.runtime.control_plane import control_listener
from greenroom.runtime.listener import bind, bound
from greenroom.settings.process import Address

FOREIGN = (
    "evil.example",
    "evil.example:8081",
    "127.0.0.1.evil.example",
    "EVIL.EXAMPLE.",
    "localhost.evil.example:8081",
    "localhost.:1",
)
OWN = (
    "127.0.0.1",
    "127.0.0.1:8081",
    "[::1]:8081",
    "[::1]",
    "localhost",
    "LOCALHOST:8081",
    "me.localhost:1",
    "buildhost:8081",
    "192.0.2.7:80",
)


def answers(tmp_path: Path, settings: str, hosts: tuple[str, ...]) -> dict[str, int]:
    file = tmp_path / "greenroom.toml"
    file.write_text(f'data = "."\norigin = "http://192.0.2.1"\n{settings}\n')
    config = load_config(file)

    async def story() -> dict[str, int]:
        listener = control_listener(
            PlainTextResponse("figures"), lambda: config, bind(Address("127.0.0.1", 0), "a test")
        )
        await listener.start()
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                url = f"http://{bound(listener._listener)}/status"
                return {
                    host: (await client.get(url, headers={"Host": host})).status_code
                    for host in hosts
                }
        finally:
            await listener.close()

    return asyncio.run(story())


@pytest.mark.parametrize(("hosts", "status"), [(FOREIGN, 421), (OWN, 200)])
def test_from_this_machine_only_names_that_no_stranger_owns_are_answered(
    tmp_path: Path, hosts: tuple[str, ...], status: int
) -> None:
    assert answers(tmp_path, "", hosts) == dict.fromkeys(hosts, status)


def test_a_trusted_proxy_on_this_machine_may_ask_by_its_public_name(tmp_path: Path) -> None:
    hosts = ("ops.example.com",)
    assert answers(tmp_path, 'trusted_proxies = ["127.0.0.1"]', hosts) == {"ops.example.com": 200}
    assert answers(tmp_path, 'trusted_proxies = ["192.0.2.9"]', hosts) == {"ops.example.com": 421}
