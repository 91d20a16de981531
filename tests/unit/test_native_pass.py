"""Native passes: when one is given, what it says, and that what it lets by is what the ledger would
have let by.
"""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from admission_world import small_room
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner
from visitors import Browser, Site

from greenroom.cli.commands import app
from greenroom.config_file.load import read_config
from greenroom.decision.cookies import TicketCookies
from greenroom.decision.native_pass import PassKeys, PassWriter, no_pass_because, pass_writer
from greenroom.decision.verdict import Forward
from greenroom.errors import InvalidConfig
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.visit import Arrival, Outcome, Standing

SECRET = "0123456789abcdef0123456789abcdef"
KEY = ec.generate_private_key(ec.SECP256R1())
PEM = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
KEYS = PassKeys(SECRET, KEY.private_bytes(*PEM))
NOW = 1_700_000_000_000


def room(**changes: Any) -> Room:
    return small_room(
        **{
            "native_pass": "hs256",
            "name": "shop",
            "path": "/shop",
            "session_duration": 5,
            **changes,
        }
    )


def active(renewed_ms: int = NOW, ends_ms: int = NOW + 300_000) -> Outcome:
    return Outcome(Standing.ACTIVE, ends_ms, renewed_ms)


def visit(host: str = "shop.example", scheme: str = "http") -> Arrival:
    return Arrival(
        "GET",
        scheme,
        host.lower().partition(":")[0],
        "/shop",
        "",
        ((b"host", host.encode()),),
        "192.0.2.1",
    )


def decoded(text: bytes) -> bytes:
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def value(cookie: bytes) -> bytes:
    return cookie.partition(b";")[0].partition(b"=")[2]


def passed(
    kind: str, host: str = "shop.example", outcome: Outcome | None = None, now_ms: int = NOW
) -> bytes:
    return value(
        PassWriter(room(native_pass=kind), KEYS, False).cookie(
            visit(host), outcome or active(), now_ms
        )
    )


@pytest.mark.parametrize(
    ("scheme", "always", "crosses"),
    [("http", False, False), ("https", False, True), ("http", True, True)],
)
def test_a_pass_crosses_sites_exactly_when_the_ticket_does(
    scheme: str, always: bool, crosses: bool
) -> None:
    cookie = PassWriter(room(), KEYS, always).cookie(visit(scheme=scheme), active(), NOW)
    ticket = TicketCookies(room(), always).of(scheme).set(b"sealed", 5, NOW)
    attributes = [line.partition(b"; ")[2].partition(b"; Max-Age")[0] for line in (cookie, ticket)]
    assert attributes[0] == attributes[1]
    assert (b"; SameSite=None" in cookie, b"; Secure" in cookie) == (crosses, crosses)


@pytest.mark.parametrize("kind", ["hs256", "es256"])
def test_a_jwt_says_room_host_path_and_end_and_nothing_else(kind: str) -> None:
    head, claims, signature = passed(kind).split(b".")
    assert json.loads(decoded(head)) == {"alg": kind.upper(), "typ": "JWT"}
    assert json.loads(decoded(claims)) == {
        "aud": "shop",
        "host": "shop.example",
        "path": "/shop",
        "exp": NOW // 1000 + 5,
    }
    signed = head + b"." + claims
    if kind == "hs256":
        assert decoded(signature) == hmac.digest(SECRET.encode(), signed, "sha256")
    else:
        raw = decoded(signature)
        r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        KEY.public_key().verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))


def test_a_secure_link_is_what_nginx_computes() -> None:
    made = base64.urlsafe_b64encode(
        hmac.digest(SECRET.encode(), b'secure_link ["shop", "/shop"]', "sha256")
    )[:22].decode()
    for host in ("shop.example", "Shop.example:8080", "a" * 53):
        digest, until = passed("secure_link", host).split(b",")
        assert int(until) == NOW // 1000 + 4, "nginx counts the whole second that it names"
        assert decoded(digest) == hashlib.md5(f"{until.decode()}{host}{made}".encode()).digest()
    assert passed("secure_link", "a" * 54) == b"", (
        "of that, MD5 would read a step without the secret"
    )
    assert passed("hs256", "a" * 54) != b""


def test_each_room_and_path_has_a_link_secret_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    asked = [
        ("shop", "/"),
        ("shop", "/a"),
        ("shop2", "/"),
        ("shop /", "a"),
        ("shop", '/"'),
        ("shop", '/\\"'),
    ]
    made = [KEYS.link_secret(*one) for one in asked]
    assert len(set(made)) == len(made)
    printed = CliRunner().invoke(app, ["pass-secret", str(tmp_path / "secret"), "shop", "/a"])
    assert (printed.exit_code, printed.output) == (0, made[1].decode() + "\n")
    for content, said in (("short", "at least 32"), ("", "empty")):
        (tmp_path / "secret").write_text(content)
        refused = CliRunner().invoke(app, ["pass-secret", str(tmp_path / "secret"), "shop"])
        assert refused.exit_code == 1
        assert said in refused.output
    assert CliRunner().invoke(app, ["pass-secret", str(tmp_path / "none"), "shop"]).exit_code == 1


def test_two_visitors_get_the_same_pass_because_it_names_no_visitor(tmp_path: Path) -> None:
    site = pass_site(tmp_path)
    first, second = Browser(site), Browser(site, client="192.0.2.2")
    passes = [site.ask(one.arrival("/shop")).pass_cookie for one in (first, second)]
    assert passes[0] == passes[1] != b""


def test_the_cookie_is_scoped_as_the_ticket_and_lives_as_long_as_the_pass() -> None:
    cookie = PassWriter(room(cookie_suffix="s"), KEYS, True).cookie(visit(), active(), NOW)
    assert cookie.startswith(b"__greenroom_pass_s=")
    assert b"; Path=/shop; HttpOnly; Secure; SameSite=None; Partitioned; Max-Age=5;" in cookie


@pytest.mark.parametrize(
    ("outcome", "now_ms"),
    [
        (active(NOW - 4_500), NOW),  # renewed almost q ago
        (active(NOW, NOW + 800), NOW),  # the session is nearly over
        (active(NOW - 290_000, NOW + 9_000), NOW),  # provisional: as if renewed long ago
    ],
)
def test_no_pass_when_there_is_no_time_left_for_one(outcome: Outcome, now_ms: int) -> None:
    assert PassWriter(room(), KEYS, False).cookie(visit(), outcome, now_ms) == b""


def test_a_pass_ends_with_its_session() -> None:
    _, claims, _ = passed("hs256", outcome=active(NOW, NOW + 2_900)).split(b".")
    assert json.loads(decoded(claims))["exp"] == NOW // 1000 + 2


def test_a_pass_never_opens_another_room() -> None:
    wanting = room(path="/shop")
    below = small_room(id="b", name="vip", path="/shop/vip")
    assert "room vip" in no_pass_because(wanting, KEYS, [wanting, below])
    assert pass_writer(wanting, KEYS, [wanting, below], False) is None
    for harmless in (
        small_room(id="b", name="vip", path="/shopping"),
        small_room(id="b", name="vip", host="other.example", path="/shop/vip"),
        small_room(id="b", name="vip", path="/"),
    ):
        plain = room(host="shop.example")
        assert no_pass_because(plain, KEYS, [plain, harmless]) == ""
    for host, other in (
        ("*", "a.example"),
        ("*.example", "a.example"),
        ("a.b.example", "*.example"),
        ("*.b.example", "*.example"),
    ):
        wanting = room(host=host)
        assert no_pass_because(
            wanting, KEYS, [wanting, small_room(id="b", name="vip", host=other, path="/shop/vip")]
        )


def test_rooms_that_can_have_no_pass() -> None:
    assert "one route" in no_pass_because(
        room(additional_routes=(Route("b.example", "/"),), cookie_suffix="s"), KEYS, []
    )
    assert "one route" in no_pass_because(room(case_insensitive_paths=True), KEYS, [])
    assert "secret_file" in no_pass_because(room(), PassKeys(), [])
    assert "key_file" in no_pass_because(room(native_pass="es256"), PassKeys(SECRET), [])


def test_keys_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        PassKeys("short")
    with pytest.raises(ValueError, match="PEM"):
        PassKeys("", b"nonsense")
    for wrong in (ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)):
        with pytest.raises(ValueError, match="P-256"):
            PassKeys("", wrong.private_bytes(*PEM))


TOML = """
origin = "http://127.0.0.1:3000"
[native_pass]
{keys}
[[rooms]]
name = "shop"
host = "*"
total_active_users = 1
new_users_per_minute = 1
native_pass = "{kind}"
"""


def test_keys_come_from_files_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "key.pem").write_bytes(KEY.private_bytes(*PEM))
    config = read_config(
        TOML.format(keys='secret_file = "secret"\nkey_file = "key.pem"', kind="es256"),
        tmp_path / "greenroom.toml",
    )
    assert config.rooms[0].native_pass == "es256"
    assert {tmp_path / "secret", tmp_path / "key.pem"} <= set(config.files), "they are watched"
    (tmp_path / "short").write_text("x")
    for keys, kind, said in (
        ("", "hs256", "needs secret_file"),
        ('secret_file = "secret"', "es256", "needs key_file"),
        ('secret_file = "short"', "hs256", "at least 32"),
        ('secret_file = "none"', "hs256", "cannot read"),
    ):
        with pytest.raises(InvalidConfig, match=said) as caught:
            read_config(TOML.format(keys=keys, kind=kind), tmp_path / "greenroom.toml")
        assert len(caught.value.problems) == 1, "no problem that only follows from another"


def test_a_room_behind_a_wrong_one_is_named_by_its_own_place() -> None:
    wrong = '[[rooms]]\nname = "a b"\nhost = "a.example.com"\n[[rooms]]'
    with pytest.raises(InvalidConfig) as caught:
        read_config(TOML.format(keys="", kind="hs256").replace("[[rooms]]", wrong))
    assert caught.value.problems[-1].pointer == "rooms[1].native_pass"
    assert caught.value.problems[-1].line == 13


def pass_site(folder: Path, **changes: Any) -> Site:
    site = Site(
        folder,
        room(total_active_users=2, new_users_per_minute=1_000, pace_admissions=False, **changes),
    )
    site._passes = lambda one: pass_writer(one, KEYS, site.rooms, False)
    site.settle()
    return site


@settings(max_examples=examples(20))
@given(
    seed=st.integers(0, 1 << 32),
    duration=st.sampled_from([1, 2, 5, 30]),
    renews=st.booleans(),
    kind=st.sampled_from(["hs256", "secure_link"]),
)
def test_while_a_pass_is_valid_the_ledger_counts_the_session_and_asking_would_change_nothing(
    seed: int, duration: int, renews: bool, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The law behind exact limits: a request on a pass is one that would have been let by, and that
    would have left no trace.
    """
    chance = Random(seed)
    site = pass_site(
        tmp_path_factory.mktemp("site"),
        session_duration=duration,
        disable_session_renewal=not renews,
        native_pass=kind,
    )
    ledger = site.ledgers["r"]
    people = [Browser(site, client=f"192.0.2.{number}") for number in range(5)]
    valid: dict[
        bytes, tuple[bytes, int, int]
    ] = {}  # pass -> ticket id, until when, the renewal it came with
    for _ in range(60):
        site.advance(int(chance.expovariate(1 / chance.choice([300, 2_000, 20_000]))))
        now = site.clock.ms
        before = list(ledger.snapshot())
        for text, (ticket_id, until_s, renewed_ms) in list(valid.items()):
            if now // 1000 < until_s:  # as the proxy compares
                found: list[Outcome] = []
                ledger.view(ticket_id, found.append)
                assert (found[0].standing, found[0].renewed_ms) == (Standing.ACTIVE, renewed_ms)
            else:
                del valid[text]
        assert list(ledger.snapshot()) == before
        reply = chance.choice(people).visit("/shop")
        if isinstance(reply, Forward) and reply.pass_cookie:
            text = value(reply.pass_cookie)
            until_s = (
                int(text.split(b",")[1]) + 1
                if kind == "secure_link"
                else json.loads(decoded(text.split(b".")[1]))["exp"]
            )
            outcome = site.events_seen[-1].outcome
            assert outcome is not None
            assert reply.ticket is not None
            valid[text + reply.ticket.id] = reply.ticket.id, until_s, outcome.renewed_ms
        assert ledger.gauges().active <= 2
