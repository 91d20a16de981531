"""Addresses and origins as operators write them."""

import pytest

from greenroom.config_file.addresses import (
    address_of,
    listener_problems,
    loop_problems,
    network_problems,
    origin_problems,
)
from greenroom.settings.process import Address

LISTENERS = {"listen": Address("0.0.0.0", 8080), "control": Address("127.0.0.1", 8081)}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        ("[::1]:80", Address("::1", 80)),
        (":80", Address("0.0.0.0", 80)),
        ("localhost:0", Address("localhost", 0)),
        ("a.example.com:65535", Address("a.example.com", 65535)),
    ],
)
def test_an_address_is_understood_and_written_back(text: str, address: Address) -> None:
    assert address_of(text) == address
    assert address_of(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "80",
        "127.0.0.1",
        "::1:80",
        "[::1]",
        "[1.2.3]:80",
        "a:65536",
        "a:-1",
        "a b:1",
        "http://a:1",
        "a:1/",
        "[a]:1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    assert address_of(text) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "https://a.example.com:8443",
        "http://127.0.0.1:1",
        "http://[::1]:3000",
        "http://a/",
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str) -> None:
    assert origin_problems("origin", url) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "ftp://a",
        "http://",
        "http://a:0",
        "http://a:x",
        "http://a/x",
        "http://a?x",
        "http://u@a",
        "http://a b",
        " http://a",
        "//a",
    ],
)
def test_anything_else_is_no_origin(url: str) -> None:
    assert len(origin_problems("origin", url)) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080", "http://127.0.0.9:8080", "http://0.0.0.0:8080", "http://[::1]:8081", "http://127.1:8080", "http://0:8080",
        "http://0x7f.1:8080", "http://2130706433:8080", "http://017700000001:8080", "http://[::ffff:127.0.0.1]:8080",
        "http://[::ffff:7f00:1]:8081", "http://LocalHost.:8080",
    ],
)  # fmt: skip
def test_an_origin_that_leads_back_here_is_found(url: str) -> None:
    assert len(loop_problems("origin", url, LISTENERS)) == 1


@pytest.mark.parametrize(
    "url",
    ["http://localhost:8082", "http://10.1:8080", "http://a.example.com:8080", "http://localhost"],
)
def test_an_origin_elsewhere_is_fine(url: str) -> None:
    assert loop_problems("origin", url, LISTENERS) == []


def test_the_default_port_counts_when_none_is_written() -> None:
    assert (
        len(loop_problems("origin", "https://localhost", {"listen": Address("0.0.0.0", 443)})) == 1
    )


@pytest.mark.parametrize(
    ("control", "listen", "clash"),
    [
        (("127.0.0.1", 80), ("127.0.0.1", 80), True),
        (("127.0.0.1", 80), ("0.0.0.0", 80), True),
        (("0.0.0.0", 80), ("127.0.0.1", 80), True),
        (("127.0.0.1", 81), ("0.0.0.0", 80), False),
        (("127.0.0.1", 80), ("10.0.0.1", 80), False),
        (("127.0.0.1", 0), ("127.0.0.1", 0), False),
    ],
)
def test_two_listeners_need_two_addresses(
    control: tuple[str, int], listen: tuple[str, int], clash: bool
) -> None:
    assert bool(listener_problems(Address(*control), Address(*listen))) is clash


@pytest.mark.parametrize(
    ("network", "fine"),
    [
        ("10.0.0.0/8", True),
        ("::1", True),
        ("fd00::/8", True),
        ("10.0.0.1/8", False),
        ("a", False),
        (3, False),
    ],
)
def test_a_trusted_proxy_is_an_address_or_a_network(network: object, fine: bool) -> None:
    assert (network_problems("trusted_proxies[0]", network) == []) is fine
