"""Forms of the dashboard and the return from a provider behind proxies that write the host in
another way.
"""

from typing import Any

import pytest
from dashboard_rig import PASSWORD, DashboardRig, Visitor
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from structlog.testing import capture_logs

from greenroom.accounts.dashboard.oidc import _address
from greenroom.dashboard.app import _from_own_page
from greenroom.request.arrival import origin_of

OPS = "https://ops.example.com"
NAMES = st.sampled_from(["ops.example.com", "localhost", "10.0.0.7", "[2001:db8::7]", "[::1]"])
PORTS = st.sampled_from([80, 443, 8081, 1, 65_535])
SCHEMES = st.sampled_from(["http", "https"])
USUAL = {"http": 80, "https": 443}


@pytest.fixture
def rig(dashboard: DashboardRig) -> DashboardRig:
    dashboard.add_account("ada", "admin")
    return dashboard


def sign_in(rig: DashboardRig, base: str, **headers: str) -> Any:
    return Visitor(rig, base=base).ask(
        "POST", "/sign-in", {"name": "ada", "password": PASSWORD}, headers
    )


@pytest.mark.parametrize(
    ("base", "origin", "host"),
    [
        (OPS, OPS, "ops.example.com:443"),
        (OPS, OPS, "OPS.Example.COM"),
        (OPS, OPS, "ops.example.com."),
        (OPS, OPS, "Ops.example.com.:443"),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8081", "127.0.0.1:8081"),
        ("http://localhost", "http://localhost", "LOCALHOST:80"),
        ("http://[::1]:8081", "http://[::1]:8081", "[0:0:0:0:0:0:0:1]:8081"),
    ],
)
def test_a_form_is_taken_however_the_proxy_writes_the_host(
    rig: DashboardRig, base: str, origin: str, host: str
) -> None:
    assert sign_in(rig, base, Origin=origin, Host=host).status_code == 303


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "https://ops.example.com:8443",
        "https://ops.example.com.evil.example",
        "https://ops.example.com@evil.example",
        "http://ops.example.com",
        "http://ops.example.com:443",
        "null",
        "",
        "https://",
        "ftp://ops.example.com",
        "https://ops.example.com/",
        "https://ops.example.com:",
    ],
)
def test_a_form_of_another_origin_is_refused(rig: DashboardRig, origin: str) -> None:
    assert sign_in(rig, OPS, Origin=origin, Host="ops.example.com").status_code == 403


def test_a_proxy_that_drops_the_host_is_named_in_page_and_log(rig: DashboardRig) -> None:
    with capture_logs() as logs:
        refused = sign_in(rig, OPS, Origin=OPS, Host="127.0.0.1:8081")
    assert refused.status_code == 403
    for part in (OPS, "127.0.0.1:8081", "proxy_set_header Host", "X-Forwarded-Host"):
        assert part in refused.text
    assert "reload" not in refused.text, "that never helps"
    (line,) = [one for one in logs if one["event"] == "dashboard_form_from_another_host"]
    assert (line["origin"], line["host"]) == (OPS, "127.0.0.1:8081")
    assert "X-Forwarded-Host" in line["reason"]


def test_hosts_on_that_page_are_text(rig: DashboardRig) -> None:
    refused = sign_in(rig, OPS, Origin=OPS, Host="<script>alert(1)</script>" + "a" * 5_000)
    assert refused.status_code == 403
    assert "<script>alert" not in refused.text
    assert "a" * 300 not in refused.text


def request(scheme: str, host: str, origin: str) -> Request:
    headers = [(b"host", host.encode()), (b"origin", origin.encode())]
    scope = {"type": "http", "scheme": scheme, "path": "/", "query_string": b"", "method": "POST"}
    return Request({**scope, "headers": headers, "server": ("127.0.0.1", 8081)})


@given(SCHEMES, NAMES, PORTS, st.booleans(), st.booleans(), st.booleans())
def test_every_spelling_of_one_host_is_one_origin(
    scheme: str, name: str, port: int, upper: bool, dot: bool, written: bool
) -> None:
    browser = f"{scheme}://{name}" + ("" if port == USUAL[scheme] else f":{port}")
    host = (name.upper() if upper else name) + ("." if dot and "[" not in name else "")
    host += f":{port}" if written or port != USUAL[scheme] else ""
    assert origin_of(scheme, host.encode()) == browser
    assert _from_own_page(request(scheme, host, browser))


@given(SCHEMES, NAMES, PORTS, NAMES, PORTS)
def test_different_hosts_and_ports_are_never_one_origin(
    scheme: str, name: str, port: int, other: str, another: int
) -> None:
    same = (name, port) == (other, another)
    host = f"{other}:{another}"
    assert _from_own_page(request(scheme, host, f"{scheme}://{name}:{port}")) == same


class _Page:
    def __init__(self, scheme: str, host: str) -> None:
        self.request = request(scheme, host, "")

    def url(self, path: str) -> str:
        return path


@pytest.mark.parametrize("host", ["OPS.example.com:443", "ops.example.com.", "ops.example.com"])
def test_providers_are_given_one_return_address(host: str) -> None:
    assert _address(_Page("https", host), "/back") == f"{OPS}/back"  # type: ignore[arg-type]
