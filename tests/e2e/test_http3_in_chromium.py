"""HTTP/3 in front: Chromium, which is told to speak nothing else, waits at Caddy and Envoy, is let
in and sends a body as over any version.
"""

import base64
import copy
import datetime
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from dashboard_browser import CHROMIUM
from playwright.sync_api import Browser, Page, sync_playwright
from real_proxies import START_S, command_of, listens, running_proxy, write_configuration

SITE = "shop.localhost"
PATIENCE_S = 60.0
ROOM = f"""[[rooms]]
name = "shop"
host = "{SITE}"
total_active_users = 1
new_users_per_minute = 60
pace_admissions = false
refresh_max_seconds = 2
"""
NAVIGATED = "performance.getEntriesByType('navigation')[0].nextHopProtocol"
FETCHED = "performance.getEntriesByType('resource').filter(one => one.initiatorType == 'fetch').map(one => one.nextHopProtocol)"


def certificate(folder: Path) -> str:
    """Writes cert.pem and key.pem; gives what Chromium knows the key by."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SITE)]),
        datetime.datetime.now(datetime.UTC),
    )
    begun = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    )
    begun = begun.serial_number(x509.random_serial_number()).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(SITE)]), False
    )
    day = datetime.timedelta(days=1)
    made = begun.not_valid_before(now - day).not_valid_after(now + day).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


def caddy_over_http3(text: str, port: int, folder: Path) -> str:
    """The example with this certificate: Caddy then speaks HTTP/3 too."""
    written = f"http://:{port} {{\n"
    assert written in text
    return text.replace(
        written, f"https://{SITE}:{port} {{\n\ttls {folder}/cert.pem {folder}/key.pem\n"
    )


def envoy_over_http3(text: str, port: int, folder: Path) -> str:
    """The example with a second listener on the same port, for QUIC."""
    config = yaml.safe_load(text)
    listener = copy.deepcopy(config["static_resources"]["listeners"][0])
    listener |= {"name": "visitors-http3", "udp_listener_config": {"quic_options": {}}}
    listener["address"]["socket_address"]["protocol"] = "UDP"
    (chain,) = listener["filter_chains"]
    pair = {
        "certificate_chain": {"filename": f"{folder}/cert.pem"},
        "private_key": {"filename": f"{folder}/key.pem"},
    }
    kind = "type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport"
    tls = {
        "@type": kind,
        "downstream_tls_context": {"common_tls_context": {"tls_certificates": [pair]}},
    }
    chain["transport_socket"] = {"name": "envoy.transport_sockets.quic", "typed_config": tls}
    chain["filters"][0]["typed_config"] |= {"codec_type": "HTTP3", "http3_protocol_options": {}}
    config["static_resources"]["listeners"].append(listener)
    return yaml.safe_dump(config)


OVER_HTTP3 = {"caddy": caddy_over_http3, "envoy": envoy_over_http3}


@pytest.fixture(params=OVER_HTTP3)
def site(
    request: Any, tmp_path: Path, greenroom: Any, origin: Any, free_port: Callable[[], int]
) -> Iterator[tuple[str, str]]:
    """The address of a proxy with its example and a certificate, greenroom and an application
    behind it; and the certificate's key.
    """
    name = request.param
    spki, at = (
        certificate(tmp_path),
        {
            "proxy": free_port(),
            "greenroom": free_port(),
            "origin": int(origin.url.rpartition(":")[2]),
        },
    )
    write_configuration(
        name, tmp_path, at, ROOM, lambda text: OVER_HTTP3[name](text, at["proxy"], tmp_path)
    )
    config = (
        "--config",
        str(tmp_path / "greenroom.toml"),
        "--control",
        "127.0.0.1:0",
        "--data",
        str(tmp_path / "data"),
    )
    running = greenroom.run(command_of(name), *config)
    with running_proxy(name, tmp_path) as proxy:
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        greenroom.eventually(
            lambda: listens(proxy, tmp_path, at["proxy"]),
            lambda: (tmp_path / "proxy.log").read_text(),
            START_S,
        )
        yield f"https://{SITE}:{at['proxy']}/", spki


@pytest.fixture
def browser(site: tuple[str, str]) -> Iterator[Browser]:
    """Speaks HTTP/3 to the site and nothing else."""
    address, spki = site
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--enable-quic",
        f"--host-resolver-rules=MAP {SITE} 127.0.0.1",
        f"--origin-to-force-quic-on={address.removeprefix('https://').rstrip('/')}",
        f"--ignore-certificate-errors-spki-list={spki}",
    ]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


def visitor(browser: Browser) -> Page:
    """In a window of their own, with cookies of their own."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE_S * 1_000)
    return page


def has_ticket(page: Page) -> bool:
    return any(cookie.get("name") == "__cfwaitingroom" for cookie in page.context.cookies())


def test_a_visitor_waits_is_let_in_and_sends_a_body_over_http3(
    browser: Browser, site: tuple[str, str], origin: Any, greenroom: Any
) -> None:
    address, _ = site
    inside, waiting = visitor(browser), visitor(browser)
    answer = inside.goto(address)
    assert answer is not None
    assert (answer.status, answer.headers.get("x-origin")) == (200, "yes")
    assert (inside.evaluate(NAVIGATED), has_ticket(inside)) == ("h3", True)

    held = waiting.goto(address)
    assert held is not None
    assert (held.headers.get("x-origin"), has_ticket(waiting)) == (None, True)
    assert waiting.evaluate(NAVIGATED) == "h3"
    greenroom.eventually(
        lambda: waiting.evaluate(FETCHED), "an update", PATIENCE_S
    )  # no wait_for_function: the page's policy forbids eval
    assert set(waiting.evaluate(FETCHED)) == {"h3"}, "the page asks for news over HTTP/3 too"

    said = json.loads(
        inside.evaluate(
            "fetch('/order', { method: 'POST', body: 'x'.repeat(300_000) }).then(answer => answer.text())"
        )
    )
    assert (said["method"], said["path"], len(said["body"])) == ("POST", "/order", 300_000)
    assert not [name for name, _ in said["headers"] if name.lower() == "cookie"], (
        "the application does not see the ticket"
    )
    assert set(
        greenroom.eventually(lambda: inside.evaluate(FETCHED), "the timing of the POST", PATIENCE_S)
    ) == {"h3"}

    assert origin.requests[0] == "GET /"
    assert '"method"' not in waiting.inner_text("body")
    inside.evaluate("fetch('/?greenroom=leave', { method: 'POST' }).then(answer => answer.text())")
    greenroom.eventually(
        lambda: '"method"' in waiting.inner_text("body"), "the visitor is let in", PATIENCE_S
    )
    assert waiting.evaluate(NAVIGATED) == "h3"
