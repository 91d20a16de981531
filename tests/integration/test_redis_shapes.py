"""Redis as operators run it: behind Sentinels, as a cluster, over TLS, on a socket file, and with a
user who may do only what is needed.
"""

import asyncio
import datetime
import ipaddress
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from admission_world import small_room
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from ports import free_port
from redis_people import LONG_S, House, in_house
from redis_world import RedisServer, wait_until

from greenroom.config_file.shared import SharedLedgers
from greenroom.errors import InvalidConfig
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.link import Link
from greenroom.model.visit import Standing
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.shared_ledger_store import SharedLedgerStore

ROOT = Path(__file__).parents[2]
NOBODY = bytes(12)
PATIENT_MS = 20_000
"""A Redis that a busy machine lets stand still for seconds is not taken for a dead one."""


@pytest.fixture
def started() -> Iterator[list[RedisServer]]:
    servers: list[RedisServer] = []
    yield servers
    for server in servers:
        server.kill()


async def serves(house: House) -> None:
    """Three fit in, and one who is inside is known."""
    await house.until_synced()
    found, counts = await house.crowd(5)
    assert counts == {"ADMITTED": 3, "WAITING": 2}
    inside = [one for one, outcome in found.items() if outcome.standing is Standing.ADMITTED]
    assert (await house.ask("view", inside[0])).standing is Standing.ACTIVE


def test_when_a_replica_takes_over_sessions_stay_and_unused_permits_are_void(
    tmp_path: Path, started: list[RedisServer]
) -> None:
    master = RedisServer(tmp_path / "master")
    replica = RedisServer(tmp_path / "replica", "--replicaof", "127.0.0.1", str(master.port))
    conf = tmp_path / "sentinel.conf"
    conf.write_text(
        f"sentinel monitor shop 127.0.0.1 {master.port} 1\nsentinel down-after-milliseconds shop {PATIENT_MS}\n"
        "sentinel failover-timeout shop 2000\n"
    )
    sentinel = RedisServer(tmp_path / "sentinel", program=("redis-server", str(conf), "--sentinel"))
    started += [master, replica, sentinel]
    wait_until(
        lambda: replica.client().info("replication").get("master_link_status") == "up",
        "the replica does not follow",
    )
    wait_until(
        lambda: int(sentinel.client().sentinel_master("shop")["num-slaves"]) == 1,
        "Sentinel knows no replica",
    )

    async def story(house: House) -> None:
        await house.until_synced()
        found, counts = await house.crowd(2)
        assert counts == {"ADMITTED": 2}
        before = await house.epoch()
        assert master.client().wait(1, 20_000) == 1
        sentinel.client().execute_command("SENTINEL", "SET", "shop", "down-after-milliseconds", 500)
        master.kill()
        await house.until_answered(NOBODY)
        (state,) = (await house.ledgers.states()).values()
        assert state["epoch"] > before
        assert (state["permits"], state["inside"]) == (0, 2)
        assert [(await house.ask("view", one)).standing for one in found] == [Standing.ACTIVE] * 2
        await house.until_synced()
        _, counts = await house.crowd(4)
        assert counts["ADMITTED"] <= 1

    in_house(f"redis+sentinel://127.0.0.1:{sentinel.port}/shop", story)


async def test_a_process_begins_and_holds_visitors_while_no_cluster_can_be_reached(
    tmp_path: Path, started: list[RedisServer]
) -> None:
    port = free_port(and_at=10_000)
    link, errors = Link(f"redis+cluster://127.0.0.1:{port}"), list[BaseException]()
    shared = SharedLedgers(link, link, "here", ("here",))
    clock = ServerClock(MonotonicClock())
    names = lambda: ("here",)  # noqa: E731
    store = SharedLedgerStore(shared, names, tmp_path, clock, lambda _: None, errors.append)
    await store.exchange_keys()
    await store.restore(lambda _: (small_room(),))
    assert store.failing
    server = RedisServer(tmp_path / "node", "--cluster-enabled", "yes", port=port)
    started.append(server)
    await store._look()
    assert store.failing, "it has no slots"
    server.client().execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
    end_s = time.monotonic() + 60
    while store.failing:
        assert time.monotonic() < end_s, "it does not go on"
        await asyncio.sleep(0.1)  # the nodes agree, and the map is read again, by their clocks
        await store._look()
    await store.close()
    assert errors == []


def test_the_rooms_of_a_cluster_are_spread_and_those_of_a_dead_shard_are_held(
    tmp_path: Path, started: list[RedisServer]
) -> None:
    for number in range(3):
        options = (
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            str(PATIENT_MS),
            "--cluster-require-full-coverage",
            "no",
        )
        started.append(RedisServer(tmp_path / str(number), *options, port=free_port(and_at=10_000)))
    addresses = [f"127.0.0.1:{server.port}" for server in started]
    subprocess.run(
        ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"],
        check=True,
        capture_output=True,
    )
    wait_until(
        lambda: all(
            b"cluster_state:ok" in one.client().execute_command("CLUSTER", "INFO")
            for one in started
        ),
        "no cluster",
    )
    rooms = [
        small_room(id=f"room {number}", total_active_users=2, new_users_per_minute=100)
        for number in range(9)
    ]

    async def story(house: House) -> None:
        await house.until_synced()
        for room in rooms:
            _, counts = await house.crowd(4, room.id)
            assert counts == {"ADMITTED": 2, "WAITING": 2}
        at = {
            server.port: {str(key) for key in server.client().keys("greenroom:*:state")}
            for server in started
        }
        assert sorted(map(len, at.values())) != [0, 0, 9], "spread over shards"
        lost = max(started, key=lambda server: len(at[server.port]))
        lost.kill()
        held = 0
        for room in rooms:
            outcome = await house.arrive(os.urandom(12), room.id)
            assert outcome.standing is Standing.WAITING
            held += outcome.storage_failed
        assert held == len(at[lost.port])

    in_house(f"redis+cluster://{','.join(addresses)}", story, rooms=rooms)


def test_tls_with_a_private_authority(tmp_path: Path, started: list[RedisServer]) -> None:
    authority, certificate, key = certificates(tmp_path)
    port = free_port()
    tls = ("--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key))
    started.append(
        RedisServer(
            tmp_path / "redis",
            *tls,
            "--tls-ca-cert-file",
            str(authority),
            "--tls-auth-clients",
            "no",
        )
    )
    in_house(f"rediss://127.0.0.1:{port}?ssl_ca_certs={authority}", serves)

    async def is_held(house: House) -> None:
        assert (await house.arrive(os.urandom(12))).storage_failed

    in_house(f"rediss://127.0.0.1:{port}", is_held)  # an authority that no one knows


def test_a_socket_file(tmp_path: Path, started: list[RedisServer]) -> None:
    path = tmp_path / "s"
    started.append(RedisServer(tmp_path / "redis", "--unixsocket", str(path)))
    in_house(f"unix://{path}", serves)


def test_a_user_with_the_documented_rights_is_enough(
    tmp_path: Path, started: list[RedisServer]
) -> None:
    rights = (ROOT / "examples/redis/users.acl").read_text().removeprefix("user greenroom ")
    started.append(RedisServer(tmp_path / "redis"))
    started[0].client().execute_command(
        "ACL", "SETUSER", "greenroom", *rights.replace("PASSWORD", "s3cret/@").split()
    )
    in_house(f"redis://greenroom:s3cret%2F%40@127.0.0.1:{started[0].port}", serves)
    with pytest.raises(redis.exceptions.NoPermissionError):
        redis.Redis(port=started[0].port, username="greenroom", password="s3cret/@").flushall()

    async def is_held(house: House) -> None:
        assert (await house.arrive(os.urandom(12))).storage_failed

    in_house(f"redis://greenroom:wrong@127.0.0.1:{started[0].port}", is_held)


def test_it_stays_held_where_no_one_listens_and_no_one_waits_long(
    refusing_port: Callable[[], int],
) -> None:
    async def story(house: House) -> None:
        began = time.monotonic()
        outcomes = await asyncio.gather(*(house.arrive(os.urandom(12)) for _ in range(50)))
        assert all(outcome.storage_failed for outcome in outcomes)
        assert time.monotonic() - began < LONG_S

    in_house(f"redis://127.0.0.1:{refusing_port()}", story, timeout_s=LONG_S)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://localhost", "must begin with"),
        ("redis://", "must name a host"),
        ("redis://one,two", "names several hosts"),
        ("redis://one:port", "host and port"),
        ("redis://one/x", "database must be a number"),
        ("redis+cluster://one/1", "0 in a cluster"),
        ("redis+sentinel://one", "must name the service"),
        ("redis://one?colour=red", "unknown options: colour"),
        ("unix://", "socket file"),
    ],
)
def test_a_wrong_url_is_said(url: str, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason):
        Link(url)


def test_a_password_is_never_shown() -> None:
    link = Link("redis+sentinel://user:geheim@a:1,[::1]:2/shop/3")
    assert "geheim" not in f"{link} {link!r}"
    assert str(link) == "redis+sentinel://a:1,[::1]:2/shop/3"


SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority's certificate, and one of 127.0.0.1 with its key."""
    now = datetime.datetime.now(datetime.UTC)

    def signed(
        name: str,
        issuer: str,
        key: ec.EllipticCurvePrivateKey,
        by: ec.EllipticCurvePrivateKey,
        *,
        authority: bool,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False
            )
        )
        if authority:  # Python 3.13 asks for this and the two identifiers
            builder = builder.add_extension(SIGNS_CERTIFICATES, critical=True)
        return builder.sign(by, hashes.SHA256())

    root, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    paths = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(
        signed("root", "root", root, root, authority=True).public_bytes(serialization.Encoding.PEM)
    )
    paths[1].write_bytes(
        signed("127.0.0.1", "root", own, root, authority=False).public_bytes(
            serialization.Encoding.PEM
        )
    )
    paths[2].write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths
