"""The origin of a zone as a way inside: greenroom's own listeners and link-local addresses in any
spelling, names that lead there, loops.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from api_rig import Api, create_token

from greenroom.gateway.origin.address import Origin, OriginGuard
from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.hop import GREENROOMS_MAX, MARK
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.outbound import OutboundRefused
from greenroom.request.forwarded import ForwardedPolicy

HERE = [
    "127.0.0.1",
    "localhost",
    "127.1",
    "0",
    "0.0.0.0",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
]
LINK_LOCAL = [
    "169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[fe80::1]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "0.0.0.0",
    "2852039166", "100.100.100.200", "[2002:a9fe:a9fe::1]",
]  # fmt: skip


def test_no_spelling_of_our_own_listeners_or_of_link_local_addresses_can_be_saved(
    greenroom: Any, origin: Any
) -> None:
    running = greenroom.config(
        f'origin = "{origin.url}"\ntrusted_proxies = ["127.0.0.1"]\ndecide = "127.0.0.1:0"\n'
    )
    api = Api(running.control, create_token(greenroom.data, "zones", "--scope", "edit"))
    ports = [running.address[1], running.control[1], running._address("decide")[1]]
    urls = [f"http://{host}:{port}" for host in HERE for port in ports] + [
        f"http://{host}/" for host in LINK_LOCAL
    ]
    taken = [
        url
        for url in urls
        if api.ask("POST", "/zones", {"name": "zone.example", "greenroom": {"origin": url}}).status
        != 400
    ]
    assert taken == []
    assert (
        api.ask(
            "POST", "/zones", {"name": "zone.example", "greenroom": {"origin": origin.url}}
        ).status
        == 200
    )


def resolver(*addresses: str) -> Any:
    """A name server that gives another address each time, and then the last one."""
    left = list(addresses)

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return [left.pop(0) if len(left) > 1 else left[0]]

    return resolve


def own_address() -> str:
    """An address of this machine that is not the loopback address, or that when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])


@pytest.mark.parametrize("of_zone", [True, False])
@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0", "::"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "own"])
def test_a_name_that_leads_to_our_own_listener_is_not_connected_to(
    of_zone: bool, listening: str, address: str
) -> None:
    if address == "own":
        address, listening = own_address(), listening if listening != "127.0.0.1" else own_address()
    guard = OriginGuard(lambda: [(listening, 8080)], resolver(address))
    with pytest.raises(OutboundRefused):
        asyncio.run(guard.addresses(Origin.of("http://app.example:8080", of_zone=of_zone)))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1",
        "fe80::1%lo",
        "fd00:ec2::254",
        "224.0.0.1",
    ],
)
def test_a_name_that_leads_to_a_link_local_address_is_refused_for_a_zone_also_when_it_was_good_a_moment_ago(
    address: str,
) -> None:
    guard = OriginGuard(resolve=resolver("10.0.0.7", address))
    zone = Origin.of("http://app.example:8080", of_zone=True)
    assert asyncio.run(guard.addresses(zone)) == ["10.0.0.7"]
    with pytest.raises(OutboundRefused):
        asyncio.run(guard.addresses(zone))


def test_the_operator_of_the_machine_may_use_any_address_that_is_not_a_listener_of_ours() -> None:
    guard = OriginGuard(lambda: [("127.0.0.1", 8080)], resolver("127.0.0.1"))
    assert asyncio.run(guard.addresses(Origin.of("http://app.example:3000"))) == ["127.0.0.1"]
    assert asyncio.run(guard.addresses(Origin.of("http://169.254.10.10:3000"))) == ["169.254.10.10"]


async def test_a_refused_address_is_a_502_that_keeps_the_place_and_is_counted(rig) -> None:
    async with rig.running():
        rig.gateway.state.guard._listening = lambda: [("127.0.0.1", rig.origin.port)]
        answer = await rig.get()
        assert (answer.status, rig.counts.origin_connects_refused, rig.origin_connections) == (
            502,
            1,
            0,
        )


async def test_a_request_that_comes_back_to_us_ends_there(rig) -> None:
    async with rig.running(origin_connections=50):
        rig.origin = Origin.of(f"http://127.0.0.1:{rig.address[1]}")
        answer = await rig.get()
        assert answer.status == 508
        assert (rig.counts.requests, rig.counts.forwarded) == (2, 1)


PEER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())


def read(*values: bytes, connection: bytes = b"") -> Any:
    lines = b"".join(b"CDN-Loop: %b\r\n" % value for value in values) + (
        b"Connection: %b\r\n" % connection if connection else b""
    )
    return read_head(b"GET / HTTP/1.1\r\nHost: shop.example\r\n" + lines + b"\r\n", PEER)


def test_the_mark_is_seen_wherever_it_is_and_other_networks_marks_stay() -> None:
    for values in (
        (MARK,),
        (b"other, " + MARK.upper(),),
        (MARK, b"other"),
        (b"other", MARK),
        (b"a;x=1," + MARK + b";y=2",),
    ):
        for connection in (b"", b"cdn-loop", b"close, CDN-Loop"):
            assert read(*values, connection=connection).status == 508, values
    assert (
        read(b", ".join(b"greenroom-%d" % number for number in range(GREENROOMS_MAX))).status == 508
    )
    for values in ((), (b"cloudflare",), (b"fastly, cloudflare", b"greenroom-another"), (b"",)):
        head = read(*values)
        assert isinstance(head, RequestHead), values
        sent = outgoing_head(head, PEER, b"", frozenset()).decode().lower()
        (line,) = [line for line in sent.split("\r\n") if line.startswith("cdn-loop:")]
        assert line == "cdn-loop: " + ", ".join(
            [*(value.decode() for value in values), MARK.decode()]
        )
