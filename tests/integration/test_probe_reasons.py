"""Every published reason for a failure, each produced by a real server (or network) that fails in
just this way.
"""

import asyncio
import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import structlog
from failing_origins import (
    NAME,
    STRANGER,
    answers,
    blackhole,
    check,
    choosy_tls,
    closed_port,
    equipment,
    old_tls,
    page,
    resets,
    served,
    server_tls,
    shaken,
)

from greenroom.health.probes import Equipment, probe
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import ProbeResult, Reason

HOST = {"Host": (NAME,)}
GOOD = answers(page())


async def refused() -> ProbeResult:
    with closed_port() as port:
        return await probe(check("HTTP", port), equipment())


async def swallowed() -> ProbeResult:
    with blackhole() as port:
        return await probe(check("TCP", port, timeout=1), equipment())


async def silent() -> ProbeResult:
    async with served(answers(b"", then_s=30)) as port:
        return await probe(check("HTTP", port, timeout=1), equipment())


async def slow_body() -> ProbeResult:
    async with served(
        answers(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow", then_s=30)
    ) as port:
        return await probe(check("HTTP", port, timeout=1), equipment())


async def silent_handshake() -> ProbeResult:
    async def deaf(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(deaf) as port:
        return await probe(check("HTTPS", port, timeout=1), equipment())


async def wrong_code() -> ProbeResult:
    async with served(answers(page("503 Service Unavailable"))) as port:
        return await probe(check("HTTP", port, expected_codes=("200", "3xx")), equipment())


async def wrong_body() -> ProbeResult:
    async with served(GOOD) as port:
        return await probe(check("HTTP", port, expected_body="all is lost"), equipment())


async def body_too_far_down() -> ProbeResult:
    async with served(answers(page(body=b"x" * 10_240 + b"well"))) as port:
        return await probe(check("HTTP", port, expected_body="well"), equipment())


async def self_signed() -> ProbeResult:
    async with served(GOOD, server_tls(STRANGER)) as port:
        return await probe(check("HTTPS", port, header=HOST), equipment())


async def expired() -> ProbeResult:
    async with served(GOOD, server_tls(expired=True)) as port:
        return await probe(check("HTTPS", port, header=HOST), equipment())


async def other_name() -> ProbeResult:
    async with served(GOOD, server_tls(names_sent=[])) as port:
        return await probe(
            check("HTTPS", port, header={"Host": ("elsewhere.example.com",)}), equipment()
        )


async def other_name_though_none_is_sent() -> ProbeResult:
    async with served(GOOD, server_tls()) as port:
        return await probe(
            check("HTTPS", port, address="app.test"), equipment({"app.test": "127.0.0.1"})
        )


async def old_protocol() -> ProbeResult:
    async with shaken(old_tls()) as port:
        return await probe(check("HTTPS", port, header=HOST), equipment())


async def no_tls_at_all() -> ProbeResult:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(page("400 Bad Request"))
        await writer.drain()

    async with served(plain) as port:
        return await probe(check("HTTPS", port), equipment())


async def unknown_name() -> ProbeResult:
    async with shaken(choosy_tls()) as port:
        return await probe(check("HTTPS", port, header=HOST), equipment())


async def garbage() -> ProbeResult:
    async with served(answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")) as port:
        return await probe(check("HTTP", port), equipment())


async def hangs_up() -> ProbeResult:
    async with served(answers(b"")) as port:
        return await probe(check("HTTP", port), equipment())


async def reset() -> ProbeResult:
    async with served(resets) as port:
        return await probe(check("HTTP", port), equipment())


async def unknown_host() -> ProbeResult:
    return await probe(check("HTTP", 80, address="nowhere.invalid"), equipment())


async def name_of_a_metadata_service() -> ProbeResult:
    return await probe(
        check("HTTP", 80, address="rebound.test"), equipment({"rebound.test": "169.254.169.254"})
    )


async def name_of_a_private_address_where_those_are_forbidden() -> ProbeResult:
    return await probe(
        check("HTTP", 80, address="inside.test"),
        equipment({"inside.test": "10.0.0.1"}, private=False),
    )


async def address_of_a_metadata_service() -> ProbeResult:
    return await probe(check("HTTP", 80, address="169.254.169.254"), equipment())


async def own_listener() -> ProbeResult:
    async with served(GOOD) as port:
        return await probe(check("HTTP", port), equipment(own=(("0.0.0.0", port),)))


async def redirected_to_a_metadata_service() -> ProbeResult:
    async with served(
        answers(page("302 Found", b"", "Location: http://169.254.169.254/latest/"))
    ) as port:
        return await probe(check("HTTP", port, follow_redirects=True), equipment())


async def redirected_for_ever() -> ProbeResult:
    async with served(answers(page("302 Found", b"", "Location: /again"))) as port:
        return await probe(check("HTTP", port, follow_redirects=True), equipment())


async def redirected_to_another_scheme() -> ProbeResult:
    async with served(answers(page("302 Found", b"", "Location: file:///etc/passwd"))) as port:
        return await probe(check("HTTP", port, follow_redirects=True), equipment())


TROUBLES: dict[Callable[[], Awaitable[ProbeResult]], Reason] = {
    refused: Reason.TCP_FAILED,
    swallowed: Reason.TCP_TIMEOUT,
    silent: Reason.HTTP_TIMEOUT,
    slow_body: Reason.HTTP_TIMEOUT,
    silent_handshake: Reason.HTTP_TIMEOUT,
    wrong_code: Reason.CODE,
    wrong_body: Reason.BODY,
    body_too_far_down: Reason.BODY,
    self_signed: Reason.TLS_UNTRUSTED,
    expired: Reason.TLS_UNTRUSTED,
    other_name: Reason.TLS_NAME,
    other_name_though_none_is_sent: Reason.TLS_NAME,
    old_protocol: Reason.TLS_PROTOCOL,
    no_tls_at_all: Reason.TLS_PROTOCOL,
    unknown_name: Reason.TLS_UNRECOGNIZED,
    garbage: Reason.INVALID_RESPONSE,
    hangs_up: Reason.INVALID_RESPONSE,
    reset: Reason.RESET,
    unknown_host: Reason.UNKNOWN_HOST,
    name_of_a_metadata_service: Reason.RESTRICTED,
    name_of_a_private_address_where_those_are_forbidden: Reason.RESTRICTED,
    address_of_a_metadata_service: Reason.CONFIGURATION,
    own_listener: Reason.CONFIGURATION,
    redirected_to_a_metadata_service: Reason.CONFIGURATION,
    redirected_for_ever: Reason.CONFIGURATION,
    redirected_to_another_scheme: Reason.CONFIGURATION,
}

NETWORK = Path(__file__).resolve().parents[1] / "support" / "probe_in_strange_network.py"
ROUTES = {
    "unreachable": Reason.NO_ROUTE,
    "none": Reason.NETWORK_UNREACHABLE,
    "prohibit": Reason.OTHER,
}
"""What the routing table says -> what the probe says; each in a network namespace of its own."""


@pytest.mark.parametrize("problem", TROUBLES, ids=lambda problem: problem.__name__)
def test_a_failure_is_told_by_its_published_reason(
    problem: Callable[[], Awaitable[ProbeResult]],
) -> None:
    result = asyncio.run(problem())
    assert result.reason == TROUBLES[problem]
    assert not result.ok


@pytest.mark.needs("network")
@pytest.mark.parametrize("route", ROUTES)
def test_a_failure_of_the_network_is_told_by_its_published_reason(route: str) -> None:
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, str(NETWORK), route]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ROUTES[route]


def test_every_published_reason_is_produced() -> None:
    assert {*TROUBLES.values(), *ROUTES.values()} == set(Reason)


@pytest.mark.parametrize(
    ("problem", "tries"),
    [(swallowed, 2), (slow_body, 2), (refused, 1), (reset, 1), (wrong_code, 1)],
)
def test_a_probe_tries_again_after_a_timeout_and_after_nothing_else(
    problem: Callable[[], Awaitable[ProbeResult]], tries: int
) -> None:
    assert asyncio.run(problem()).tries == tries


def run(
    wanted: Callable[[int], HealthCheck],
    handler: object,
    tools: Equipment | None = None,
    tls: object = None,
) -> ProbeResult:
    async def whole() -> ProbeResult:
        async with served(handler, tls) as port:
            return await probe(wanted(port), tools or equipment())

    return asyncio.run(whole())


@pytest.mark.parametrize("codes", [("200",), ("2xx",), ("2XX",), ("404", "200")])
def test_codes_and_classes_of_codes_are_expected(codes: tuple[str, ...]) -> None:
    assert run(lambda port: check("HTTP", port, expected_codes=codes), GOOD).ok


def test_the_body_is_compared_without_regard_to_capitals_and_within_its_first_ten_kilobytes() -> (
    None
):
    page_ = page(body=b"x" * 10_230 + "ÄLL WELL".encode())
    assert run(lambda port: check("HTTP", port, expected_body="äll w"), answers(page_)).ok


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("X-Gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
    ],
)
@pytest.mark.parametrize(
    ("body", "ok"),
    [(b"All is WELL", True), (b"x" * 10_240 + b"well", False), (b"\0" * 50_000_000, False)],
)
def test_a_compressed_body_is_decoded_within_the_limit_before_it_is_compared(
    encoding: str, pack: Callable[[bytes], bytes], body: bytes, ok: bool
) -> None:
    packed, asked = pack(body), list[bytes]()

    async def compresses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(packed)}"
        writer.write(head.encode() + b"\r\n\r\n" + packed)

    with structlog.testing.capture_logs() as logs:
        result = run(lambda port: check("HTTP", port, expected_body="well"), compresses)
    assert result.reason == ("" if ok else Reason.BODY)
    assert b"accept-encoding: identity\r\n" in asked[0].lower()
    shown = [(found["encoding"], found["compared"]) for found in logs]
    assert shown == ([] if ok else [(encoding, body[:200].decode())])


def test_a_page_without_end_is_judged_by_its_beginning_and_timed_until_the_timeout() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 20_000
    result = run(lambda port: check("HTTP", port, timeout=3), answers(endless, then_s=60))
    assert (result.ok, result.tries) == (True, 1)
    assert 2_000 < result.rtt_ms < 30_000  # a busy machine connects late, or looks late


def test_the_time_of_a_large_page_is_that_of_its_whole_body() -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 120000\r\n\r\n" + b"x" * 60_000
    slow = answers(large, then_s=0.3, then=b"x" * 60_000)
    for _ in range(9):
        result = run(lambda port: check("HTTP", port), slow)
        assert result.rtt_ms > 290
        if result.ttfb_ms < 290:
            break  # else the machine stood still before it looked at the beginning
    assert result.ttfb_ms < 290


def test_tcp_needs_no_more_than_a_connection() -> None:
    async def says_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    result = run(lambda port: check("TCP", port), says_nothing)
    assert result.ok
    assert (result.code, result.rtt_ms) == (0, 0)
    assert result.tcp_ms > 0


def test_the_parts_of_the_waterfall_are_told_apart() -> None:
    slow = answers(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", then_s=0.2, then=b"cd")
    result = run(lambda port: check("HTTPS", port, header=HOST), slow, tls=server_tls())
    assert result.ok
    assert result.tcp_ms > 0
    assert result.tls_ms > 0
    assert result.dns_ms > 0
    assert 0 < result.request_ms < result.ttfb_ms < 190 < result.rtt_ms
    assert result.address == "127.0.0.1"


def test_the_request_says_what_the_check_says_and_who_asks() -> None:
    seen: list[bytes] = []
    header = {"Host": ("shop.example.com",), "X-Two": ("a", "b")}
    assert run(
        lambda port: check("HTTP", port, method="HEAD", path="/health?full=1", header=header),
        answers(page(), seen=seen),
    ).ok
    lines = seen[0].decode().split("\r\n")
    assert lines[0] == "HEAD /health?full=1 HTTP/1.1"
    assert {"Host: shop.example.com", "X-Two: a", "X-Two: b"} <= set(lines)
    assert sum(line.lower().startswith("host:") for line in lines) == 1
    (agent,) = (line for line in lines if line.startswith("User-Agent:"))
    assert agent.endswith("health-check-id: 0123456789abcdef)"), "sixteen characters of the id"


def test_the_server_name_of_tls_is_that_of_the_host_header_and_none_without_one() -> None:
    names: list[object] = []
    tls = server_tls(names_sent=names)
    assert run(
        lambda port: check("HTTPS", port, header={"Host": (f"{NAME}:8443",)}), GOOD, tls=tls
    ).ok
    assert run(
        lambda port: check("HTTPS", port, address=NAME), GOOD, equipment({NAME: "127.0.0.1"}), tls
    ).ok
    assert run(lambda port: check("HTTPS", port), GOOD, tls=tls).ok
    assert names == [NAME, None, None]


@pytest.mark.parametrize("header", [HOST, None])
def test_any_certificate_will_do_when_that_is_allowed(
    header: dict[str, tuple[str, ...]] | None,
) -> None:
    assert run(
        lambda port: check("HTTPS", port, header=header, allow_insecure=True),
        GOOD,
        tls=server_tls(STRANGER, expired=True),
    ).ok


def test_redirects_are_followed_when_that_is_wanted_and_stay_at_the_checked_server() -> None:
    """The redirect names the public host of the server; what answers there may be something else,
    so the address stays.
    """
    seen: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        port = writer.get_extra_info("sockname")[1]
        first = head.startswith(b"GET / ")
        writer.write(
            page("301 Moved", b"", f"Location: http://shop.example.com:{port}/new")
            if first
            else page()
        )
        await writer.drain()

    def wanted(port: int, *, follow: bool) -> HealthCheck:
        return check(
            "HTTP",
            port,
            follow_redirects=follow,
            header={"Host": ("shop.example.com",), "X-Key": ("k",)},
        )

    assert run(lambda port: wanted(port, follow=True), handler).ok
    assert [head.split()[1] for head in seen] == [b"/", b"/new"]
    assert all(b"X-Key: k" in head for head in seen)
    assert run(lambda port: wanted(port, follow=False), handler).reason == Reason.CODE


def test_headers_of_the_check_are_not_sent_to_another_host() -> None:
    seen: list[bytes] = []

    async def whole() -> ProbeResult:
        async with served(answers(page(), seen=seen)) as other:
            away = answers(page("302 Found", b"", f"Location: http://other.test:{other}/"))
            async with served(away) as port:
                wanted = check(
                    "HTTP", port, follow_redirects=True, header={"Authorization": ("secret",)}
                )
                return await probe(wanted, equipment({"other.test": "127.0.0.1"}))

    assert asyncio.run(whole()).ok
    assert b"secret" not in seen[0]
    assert b"Host: other.test" in seen[0]


def test_an_address_that_does_not_answer_leaves_time_for_the_next_one() -> None:
    async def whole() -> ProbeResult:
        async with served(GOOD) as port:
            tools = equipment()

            async def two(_host: str, _port: int) -> list[str]:
                return ["127.0.0.9", "127.0.0.1"]

            tools.guard._resolve = two
            return await probe(check("HTTP", port, address="two.test"), tools)

    result = asyncio.run(whole())
    assert (result.ok, result.address) == (True, "127.0.0.1")
