"""HTTP/3 in front: Chromium, which is told to speak nothing else, waits at Caddy, is let in and sends a body as over any other version."""

import base64
import datetime
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
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
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SITE)]), datetime.datetime.now(datetime.UTC)
    begun = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    begun = begun.serial_number(x509.random_serial_number()).add_extension(x509.SubjectAlternativeName([x509.DNSName(SITE)]), False)
    day = datetime.timedelta(days=1)
    made = begun.not_valid_before(now - day).not_valid_after(now + day).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


@pytest.fixture
def site(tmp_path: Path, greenroom: Any, origin: Any, free_port: Callable[[], int]) -> Iterator[tuple[str, str]]:
    """The address of Caddy with examples/caddy and a certificate, greenroom and an application behind it; and the certificate's key."""
    spki, at = certificate(tmp_path), {"proxy": free_port(), "greenroom": free_port(), "origin": int(origin.url.rpartition(":")[2])}

    def with_certificate(text: str) -> str:
        written = f"http://:{at['proxy']} {{\n"
        assert written in text
        return text.replace(written, f"https://{SITE}:{at['proxy']} {{\n\ttls {tmp_path}/cert.pem {tmp_path}/key.pem\n")

    write_configuration("caddy", tmp_path, at, ROOM, with_certificate)
    config = ("--config", str(tmp_path / "greenroom.toml"), "--control", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    running = greenroom.run(command_of("caddy"), *config)
    with running_proxy("caddy", tmp_path) as proxy:
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        greenroom.eventually(lambda: listens(proxy, tmp_path, at["proxy"]), lambda: (tmp_path / "proxy.log").read_text(), START_S)
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
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
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
    greenroom.eventually(lambda: waiting.evaluate(FETCHED), "an update", PATIENCE_S)  # no wait_for_function: the page's policy forbids eval
    assert set(waiting.evaluate(FETCHED)) == {"h3"}, "the page asks for news over HTTP/3 too"

    said = json.loads(inside.evaluate("fetch('/order', { method: 'POST', body: 'x'.repeat(300_000) }).then(answer => answer.text())"))
    assert (said["method"], said["path"], len(said["body"])) == ("POST", "/order", 300_000)
    assert not [name for name, _ in said["headers"] if name.lower() == "cookie"], "the application does not see the ticket"
    assert set(greenroom.eventually(lambda: inside.evaluate(FETCHED), "the timing of the POST", PATIENCE_S)) == {"h3"}

    assert origin.requests[0] == "GET /"
    assert '"method"' not in waiting.inner_text("body")
    inside.evaluate("fetch('/?greenroom=leave', { method: 'POST' }).then(answer => answer.text())")
    greenroom.eventually(lambda: '"method"' in waiting.inner_text("body"), "the visitor is let in", PATIENCE_S)
    assert waiting.evaluate(NAVIGATED) == "h3"
