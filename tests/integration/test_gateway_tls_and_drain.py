"""TLS on both sides, and a shutdown that lets everybody finish."""

import asyncio
import contextlib
import datetime
import http.client
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from greenroom.gateway import server
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.tls import server_context


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for localhost: (certificate file, key file)."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    return str(folder / "cert.pem"), str(folder / "key.pem")


async def test_visitors_come_in_by_tls(rig, certificate) -> None:
    body = b"0123456789" * 200_000
    client = ssl.create_default_context(cafile=certificate[0])
    client.set_alpn_protocols(["h2", "http/1.1"])
    async with rig.running(tls=server_context(*certificate)), rig.visitor(tls=client) as talk:
        spoken = talk.writer.get_extra_info("ssl_object")
        assert spoken.selected_alpn_protocol() == "http/1.1"
        assert spoken.version() in ("TLSv1.2", "TLSv1.3")
        for _ in range(3):
            assert (await talk.get(method="POST", body=body)).status == 200
        assert (await talk.get(head="Connection: close\r\n")).whole
        assert await talk.rest() == b""
    assert rig.requests[0].body == body
    assert rig.requests[0].header("x-forwarded-proto") == "https"
    assert rig.decisions.arrivals[0].scheme == "https"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_current_tls_is_spoken_and_nothing_older(rig, certificate, version) -> None:
    context = server_context(*certificate)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    client = ssl.create_default_context(cafile=certificate[0])
    client.minimum_version = client.maximum_version = version
    async with rig.running(tls=context), rig.visitor(tls=client) as talk:
        assert (await talk.get()).status == 200


async def test_plain_http_on_the_tls_listener_gets_nothing(rig, certificate) -> None:
    async with rig.running(tls=server_context(*certificate)):
        assert b"200 OK" not in await rig.talk(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert rig.decisions.arrivals == []


async def silent(rig, count: int) -> list[asyncio.StreamReader]:
    """Clients that connect and never begin with TLS."""
    return [(await asyncio.open_connection(*rig.address))[0] for _ in range(count)]


async def test_connections_count_before_their_tls_handshake_is_over_and_handshakes_have_their_time(
    rig, certificate
) -> None:
    client = ssl.create_default_context(cafile=certificate[0])
    async with rig.running(tls=server_context(*certificate), connections_per_address=5, head_s=2):
        async with rig.visitor(tls=client) as talk:
            connected = await silent(rig, 9)
            await rig.until(lambda: rig.counts.connections_refused == 4, "four are refused")
            assert (await talk.get()).status == 200, "a connection that is there goes on"
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(asyncio.gather(*[reader.read() for reader in connected]), 40)
        async with rig.visitor(tls=client) as talk:
            assert (await talk.get()).status == 200


async def test_handshakes_of_one_network_of_ipv6_count_together(
    rig, certificate, monkeypatch
) -> None:
    listeners = []

    class Listener:
        def __init__(self, _loop, _sock, _at_once, taken) -> None:
            self.taken = taken
            listeners.append(self)

        def close(self) -> None:
            pass

    monkeypatch.setattr(server, "TlsListener", Listener)
    context = server_context(*certificate)
    async with rig.running(tls=context, connections_per_address=2):
        with contextlib.ExitStack() as clients:
            refused = []
            for address in ("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"):
                client, taken = socket.socketpair()
                clients.enter_context(client)
                taken.setblocking(False)
                listeners[0].taken(taken, address)
                refused.append(rig.counts.connections_refused)
            assert refused == [0, 0, 1, 1]


async def test_as_many_handshakes_as_connections_make_room_for_new_ones(rig, certificate) -> None:
    client = ssl.create_default_context(cafile=certificate[0])
    async with rig.running(tls=server_context(*certificate), connections=4):
        await silent(rig, 4)
        async with rig.visitor(tls=client) as talk:
            assert (await talk.get()).status == 200
        assert (rig.counts.connections_refused, rig.counts.connections_shed) == (0, 2)


def test_handshakes_that_never_end_take_no_descriptor_from_visitors(
    greenroom, origin, certificate
) -> None:
    few = 256
    path = greenroom.folder / "greenroom.toml"
    path.write_text(
        f'origin = "{origin.url}"\n[tls]\ncert = "{certificate[0]}"\nkey = "{certificate[1]}"\n'
        '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 100\nnew_users_per_minute = 100\n'
    )
    places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(greenroom.data))
    within = ("sh", "-c", f'ulimit -n {few}; exec "$@"', "sh")
    running = greenroom.run(
        "serve", "--config", str(path), *places, within=within
    ).wait_until_ready()
    client = ssl.create_default_context(cafile=certificate[0])
    with contextlib.ExitStack() as connected:
        for _ in range(few + 50):
            connected.enter_context(socket.create_connection(running.address, timeout=60))
        for _ in range(10):
            visitor = http.client.HTTPSConnection(
                "localhost", running.address[1], timeout=60, context=client
            )
            visitor.request("GET", "/", headers={"Connection": "close"})
            assert visitor.getresponse().status == 200
            visitor.close()


async def test_a_visitor_by_tls_that_leaves_takes_its_request_with_it(rig, certificate) -> None:
    async def app(_request, _writer) -> None:
        await asyncio.sleep(3600)  # cancelled with the loop

    rig.app = app
    client = ssl.create_default_context(cafile=certificate[0])
    async with rig.running(tls=server_context(*certificate)):
        async with rig.visitor(tls=client) as talk:
            talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await rig.until(lambda: rig.requests, "the request arrives")
        await rig.until(lambda: not rig.counts.origin_connections_open, "the origin is let go")


async def secure_origin(certificate):
    async def answer(reader, writer) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context(*certificate))
    return server, Origin.of(f"https://localhost:{server.sockets[0].getsockname()[1]}")


async def test_a_request_that_comes_with_the_end_of_a_tls_connection_is_answered(
    rig, certificate
) -> None:
    """A client that needs one answer may send its `close_notify` in the same packet."""

    rig.decisions.decide = rig.hold_all
    async with rig.running(tls=server_context(*certificate)), rig.visitor() as talk:
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = ssl.create_default_context(cafile=certificate[0]).wrap_bio(
            received, sent, server_hostname="localhost"
        )

        async def until_done(step: Callable[[], Any]) -> Any:
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    talk.send(sent.read())
                    received.write(await talk.reader.read(1 << 16))

        await until_done(tls.do_handshake)
        tls.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.unwrap()
        talk.send(sent.read())
        received.write(await talk.rest())
        assert tls.read(1 << 16).endswith(rig.PAGE.body)


async def test_an_origin_by_tls_is_only_believed_with_its_certificate(rig, certificate) -> None:
    server, origin = await secure_origin(certificate)
    async with rig.running():
        for tried, status in (
            (origin, 502),
            (replace(origin, ca_file=certificate[0]), 200),
            (replace(origin, ca_file=certificate[0], server_name="other.example"), 502),
            (
                replace(origin, ca_file=certificate[0], host="127.0.0.1", server_name="localhost"),
                200,
            ),
            (replace(origin, verify=False, host="127.0.0.1"), 200),
            (replace(origin, ca_file="/no/such/file"), 502),
        ):
            rig.origin = tried
            assert (await rig.get()).status == status, tried
    server.close()


async def test_a_drain_lets_requests_finish_and_takes_no_new_ones(rig) -> None:
    finish = asyncio.Event()
    told: list[int] = []

    async def app(_request, writer) -> None:
        await finish.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    rig.app = app
    async with rig.running(), rig.visitor() as busy, rig.visitor() as idle:
        busy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await rig.until(lambda: rig.requests, "a request is under way")
        await rig.until(lambda: rig.counts.connections_open == 2, "both are there")
        draining = asyncio.create_task(rig.gateway.drain(10, told.append))
        assert await idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            await rig.get()
        assert not draining.done()
        finish.set()
        response = await busy.response()
        assert (response.body, response.header("Connection")) == (b"done", "close")
        assert await busy.rest() == b""
        assert await draining == 0
    assert told[0] == 1
    assert told[-1] == 0


async def test_a_drain_ends_in_time_even_if_a_request_does_not(rig) -> None:
    async def app(_request, _writer) -> None:
        await asyncio.sleep(3600)  # cancelled with the loop

    rig.app = app
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await rig.until(lambda: rig.requests, "a request is under way")
        assert await rig.gateway.drain(0.1) == 1
        assert await talk.rest() == b""


async def test_listeners_can_share_a_port_that_was_bound_before(rig) -> None:
    async with rig.running():
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        (address,) = await rig.gateway.start(sockets=[sock])
        assert address == sock.getsockname()
        rig.address = address
        assert (await rig.get()).status == 200


async def test_an_address_in_use_is_an_error(rig) -> None:
    async with rig.running():
        with pytest.raises(OSError, match="in use"):
            await rig.gateway.start(host="127.0.0.1", port=rig.address[1])
