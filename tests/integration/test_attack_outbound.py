"""Server-side request forgery, the same attacks on everything that greenroom calls by itself:
probes, webhooks, plain fetches, and logos.
"""

import asyncio
import gzip
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest
from failing_origins import check, equipment, served

from greenroom.alerts import delivery
from greenroom.alerts.delivery import Delivery
from greenroom.alerts.rules.message import Message
from greenroom.errors import InvalidConfig
from greenroom.health.probes import Equipment, probe
from greenroom.model.notification import Webhook
from greenroom.outbound import (
    Guard,
    OutboundFailed,
    OutboundPolicy,
    OutboundRefused,
    Request,
    RequestLimits,
    exchange,
    fetch_picture,
    policy,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LIMIT_S = 2
TRIES = 3
"""Of a probe, each with that time; the others try once."""
STALLED_S = 20
"""That a busy machine may stand still meanwhile: the floods have no end at all."""

Caller = Callable[[Guard, str, int], Awaitable[str]]
"""(guard, host as written, port) -> empty when it was answered with 200, else what went wrong."""


async def by_probe(guard: Guard, host: str, port: int) -> str:
    """A health check that follows redirects."""
    config = {"follow_redirects": True, "allow_insecure": True}
    tools = Equipment(guard, equipment().tls)
    try:
        wanted = check("HTTP", port, address=host, timeout=LIMIT_S, retries=TRIES - 1, **config)
    except InvalidConfig as error:
        return str(error)
    return str((await probe(wanted, tools)).reason)


async def by_webhook(guard: Guard, host: str, port: int) -> str:
    """A webhook, which follows none."""
    webhook = Webhook(id="a", name="a", url=f"http://{host}:{port}/hook", secret="s")
    found = await Delivery(guard, lambda: 0).call(webhook, Message(None, "", ""))
    return found.problem


async def by_fetch(guard: Guard, host: str, port: int) -> str:
    """What fetches icons and pages: follows redirects."""
    try:
        answer = await exchange(
            guard,
            Request("GET", f"http://{host}:{port}/"),
            RequestLimits(total_s=LIMIT_S, redirects=5),
        )
    except (OutboundRefused, OutboundFailed) as error:
        return str(error)
    return "" if answer.status == 200 else str(answer.status)


async def by_logo(guard: Guard, host: str, port: int) -> str:
    """A logo by its address; that the answer is no picture is found after everything else."""
    try:
        await fetch_picture(guard, f"http://{host}:{port}/", 65_536)
    except (OutboundRefused, OutboundFailed) as error:
        return "" if "not one of image/" in str(error) else str(error)
    return ""


CALLERS: dict[str, Caller] = {
    "probe": by_probe,
    "webhook": by_webhook,
    "fetch": by_fetch,
    "logo": by_logo,
}
every_caller = pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
PUBLIC = OutboundPolicy(ports=())
HERE = OutboundPolicy(ports=(), allowed=("127.0.0.0/8",), denied=policy.NEVER)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, LIMIT_S)


@pytest.fixture
def patience(hurry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For answers that come at once, unless the machine stands still."""
    limited(monkeypatch, STALLED_S)


def limited(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LIMIT_S", seconds)
    monkeypatch.setattr(delivery, "LIMITS", replace(delivery.LIMITS, total_s=seconds))
    monkeypatch.setattr(sys.modules["greenroom.outbound.exchange"], "PICTURE_S", seconds)


class Counting:
    """A server that answers everything with the same bytes, and counts connections."""

    def __init__(
        self, answer: bytes | Callable[[asyncio.StreamWriter], Awaitable[None]] = OK
    ) -> None:
        self.answer = answer
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        if callable(self.answer):
            await self.answer(writer)
        else:
            writer.write(self.answer)
        await writer.drain()


def resolver(*answers: Sequence[str]) -> Any:
    """A name server of an attacker: another answer each time, then the last one."""
    left = list(answers)

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


INSIDE = [
    "127.0.0.1", "127.8.9.10", "0.0.0.0", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "169.254.169.254", "100.100.100.200",
    "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "224.0.0.1", "255.255.255.255", "ff02::1", "2001::1",
]  # fmt: skip
SPELLED = [
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "0",
    "127.0.0.1.",
    "1",
    "00.0.0.0",
    "0x7f.0.0.0x1",
]


@every_caller
@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_that_leads_inside_is_not_connected_to(call: Caller, address: str) -> None:
    server = Counting()
    async with served(server) as port:
        assert await call(Guard(PUBLIC, resolver([address])), "shop.example", port)
        assert server.heads == []


@every_caller
async def test_a_name_that_is_public_when_it_is_judged_and_inside_when_it_is_used_is_not_connected_to(
    call: Caller,
) -> None:
    server = Counting()
    async with served(server) as port:
        for answers in (
            ([*["8.8.8.8"]], ["127.0.0.1"]),
            (["8.8.8.8"], ["8.8.8.8"], ["127.0.0.1"]),
        ):
            began = time.monotonic()
            assert await call(
                Guard(replace(PUBLIC, ports=(port,)), resolver(*answers)),
                "rebind.example",
                port,
            )
            assert time.monotonic() - began < TRIES * LIMIT_S + STALLED_S
        assert server.heads == []


@every_caller
@pytest.mark.parametrize("host", SPELLED)
async def test_no_spelling_of_an_address_that_programs_read_differently_is_used(
    call: Caller, host: str
) -> None:
    server = Counting()
    async with served(server) as port:
        assert await call(Guard(HERE), host, port) or host == "127.0.0.1."
        assert server.heads == [] or host == "127.0.0.1."


@pytest.mark.usefixtures("patience")
@every_caller
@pytest.mark.parametrize(
    "where",
    [
        "http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/", "http://2852039166/",
        "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "//169.254.169.254/", "http://user:secret@127.0.0.1/", "http://[::]:1/",
        "file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "http://127.0.0.1\\@evil.example/", "http://127.1/", "http://0/",
        "https://127.0.0.1:99999/", "javascript:1", "\x00http://127.0.0.1/",
    ],
)  # fmt: skip
async def test_no_redirect_leads_to_what_is_never_allowed(call: Caller, where: str) -> None:
    server = Counting(
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "
        + where.encode("latin-1")
        + b"\r\n\r\n"
    )
    async with served(server) as port:
        assert await call(Guard(HERE), "127.0.0.1", port)
        assert len(server.heads) <= 1


@pytest.mark.parametrize("call", [by_probe, by_fetch])
async def test_a_redirect_of_a_public_server_never_leads_inside_even_where_private_addresses_are_allowed(
    call: Caller, monkeypatch: Any
) -> None:
    """127.0.0.2 stands for a public server here: no other one can be reached from a test."""
    public = policy.is_public
    monkeypatch.setattr(
        policy, "is_public", lambda address: address == ip_address("127.0.0.2") or public(address)
    )
    inside = Counting()
    async with served(inside) as port:
        outside = Counting(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:%d/admin\r\n\r\n"
            % port
        )
        server = await asyncio.start_server(outside, "127.0.0.2", 0)
        public_port = server.sockets[0].getsockname()[1]
        assert await call(Guard(HERE), "127.0.0.2", public_port)
        assert (len(outside.heads), inside.heads) == (1, [])
        assert await call(Guard(HERE), "127.0.0.1", port) == "", "an operator may name it"
        back = Counting(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:%d/\r\n\r\n"
            % port
        )
        async with served(back) as back_port:
            assert await call(Guard(HERE), "127.0.0.1", back_port) == "", (
                "one server inside may name another"
            )
        server.close()


@pytest.mark.parametrize("call", [by_probe, by_fetch])
@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(
            {"shop.example": ["127.0.0.2"], "next.example": ["127.0.0.2", "127.0.0.1"]},
            id="the redirect's name changes its mind",
        ),
        pytest.param(
            {"shop.example": ["127.0.0.3 127.0.0.2"], "next.example": ["127.0.0.1"]},
            id="the public server's name has another",
        ),
    ],
)
async def test_no_name_server_can_make_a_redirect_of_a_public_server_lead_inside(
    call: Caller, answers: dict[str, list[str]], monkeypatch: Any
) -> None:
    """127.0.0.2 stands for a public server, 127.0.0.3 for one inside that is not there."""
    public = policy.is_public
    monkeypatch.setattr(
        policy, "is_public", lambda address: address == ip_address("127.0.0.2") or public(address)
    )

    left = {name: list(found) for name, found in answers.items()}
    inside = Counting()
    async with served(inside) as port:
        outside = Counting(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://next.example:%d/admin\r\n\r\n"
            % port
        )
        server = await asyncio.start_server(outside, "127.0.0.2", 0)

        async def resolve(host: str, _port: int) -> Sequence[str]:
            found = left[host].pop(0) if len(left[host]) > 1 else left[host][0]
            return found.split()

        assert await call(Guard(HERE, resolve), "shop.example", server.sockets[0].getsockname()[1])
        assert (len(outside.heads), inside.heads) == (1, [])
        server.close()


async def endless(writer: asyncio.StreamWriter, head: bytes, piece: bytes) -> None:
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()


async def dripping(writer: asyncio.StreamWriter, head: bytes, piece: bytes) -> None:
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.05)  # slow is the point


BOMB = gzip.compress(b"\0" * 50_000_000)
FLOODS: dict[str, Any] = {
    "a body without end": lambda writer: endless(writer, b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65_536),
    "chunks without end": lambda writer: endless(
        writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1_000
    ),
    "headers without end": lambda writer: endless(
        writer, b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"x" * 1_000 + b"\r\n"
    ),
    "one header without end": lambda writer: endless(
        writer, b"HTTP/1.1 200 OK\r\nX-A: ", b"x" * 65_536
    ),
    "hints without end": lambda writer: endless(
        writer, b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    ),
    "a status line without end": lambda writer: endless(writer, b"HTTP/1.1 200 ", b"x" * 65_536),
    "a dripping head": lambda writer: dripping(writer, b"HTTP/1.1 200 OK\r\nX-A: ", b"x"),
    "a dripping body": lambda writer: dripping(
        writer, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"
    ),
    "silence": lambda writer: dripping(writer, b"", b""),
    "a length that is a lie": lambda writer: endless(
        writer, b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", b"x" * 65_536
    ),
}


@every_caller
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_no_answer_takes_more_than_its_time_or_more_than_its_memory(
    call: Caller, flood: Any
) -> None:
    async with served(Counting(flood)) as port:
        began = time.monotonic()
        await call(Guard(HERE), "127.0.0.1", port)  # what it says of it is another test's business
        assert time.monotonic() - began < TRIES * LIMIT_S + STALLED_S


OPENED_MAX = 64 * 1024
"""More than any caller reads of an answer."""


class Bounded:
    """A decompressor that may only be asked for a bounded piece."""

    def __init__(self, made: Any) -> None:
        self._made, self.left = made, OPENED_MAX

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        assert 0 < max_length <= self.left, "an answer was opened without a bound"
        self.left -= max_length
        return self._made.decompress(data, max_length)

    def __getattr__(self, name: str) -> Any:
        assert name != "flush", "flush has no bound"
        return getattr(self._made, name)


@every_caller
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip"])
@pytest.mark.usefixtures("patience")
async def test_a_compressed_bomb_is_not_opened(call: Caller, coding: str, monkeypatch: Any) -> None:
    def opened(*_: Any, **__: Any) -> Any:
        raise AssertionError("an answer was decompressed as a whole")

    make = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompress", opened)
    monkeypatch.setattr(
        zlib, "decompressobj", lambda *given, **named: Bounded(make(*given, **named))
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (
        coding.encode(),
        len(BOMB),
    )
    server = Counting(head + BOMB)
    async with served(server) as port:
        assert await call(Guard(HERE), "127.0.0.1", port) == ""
    asked_for = server.heads[0].lower()
    assert b"accept-encoding: identity" in asked_for or b"accept-encoding" not in asked_for


@every_caller
async def test_our_own_listener_is_never_called_whatever_the_settings_allow(call: Caller) -> None:
    server = Counting()
    async with served(server) as port:
        for listening in ("127.0.0.1", "0.0.0.0", "::"):
            assert await call(
                Guard(HERE, listening=lambda listening=listening: [(listening, port)]),
                "127.0.0.1",
                port,
            )
        assert server.heads == []
