"""The record of a health check refuses what cannot be probed, and puts defaults where a zero was
written.
"""

from typing import Any

import pytest

from greenroom.errors import InvalidConfig
from greenroom.model.health_check import (
    REGIONS,
    HealthCheck,
    HttpCheck,
    TcpCheck,
    effective,
    health_check_problems,
)


def made(**fields: Any) -> HealthCheck:
    return HealthCheck(**effective({"name": "origin", "address": "origin.example.com", **fields}))


def test_zeros_and_missing_parts_become_the_defaults_that_count() -> None:
    zeros = dict.fromkeys(
        ("interval", "timeout", "retries", "consecutive_fails", "consecutive_successes"), 0
    )
    check = made(**zeros, type="https", http_config=HttpCheck(port=0), tcp_config=TcpCheck(port=0))
    assert (check.type, check.interval, check.timeout, check.retries) == ("HTTPS", 60, 5, 2)
    assert (check.consecutive_fails, check.consecutive_successes) == (1, 1)
    assert check.http_config is not None
    assert check.tcp_config is not None
    assert (check.http_config.port, check.tcp_config.port, check.port) == (443, 80, 443)


@pytest.mark.parametrize(("kind", "port"), [("HTTP", 80), ("HTTPS", 443), ("TCP", 80)])
def test_a_check_without_configuration_gets_that_of_its_type(kind: str, port: int) -> None:
    check = made(type=kind)
    assert check.port == port
    assert (check.tcp_config is not None, check.http_config is not None) == (
        kind == "TCP",
        kind != "TCP",
    )


@pytest.mark.parametrize(
    "address",
    ["origin.example.com", "10.0.0.1", "2001:db8::1", "my_app", "localhost", "EXAMPLE.com."],
)
def test_addresses_that_can_be_connected_to(address: str) -> None:
    assert made(address=address).address == address


@pytest.mark.parametrize(
    "address",
    [
        "http://a",
        "a:80",
        "a/b",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "a b",
        "-a.example.com",
        "a..b",
        "fe80::1%eth0/64",
        "[::1]",
    ],
)
def test_addresses_that_programs_read_differently_or_that_are_none(address: str) -> None:
    with pytest.raises(InvalidConfig, match="address"):
        made(address=address)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": "a b"}, "name"),
        ({"type": "ICMP"}, "type"),
        ({"interval": 3_601}, "interval"),
        ({"timeout": -1}, "timeout"),
        ({"retries": True}, "retries"),
        ({"check_regions": ("WEU", "MARS")}, "check_regions[1]"),
        ({"check_regions": ()}, "check_regions"),
        ({"http_config": HttpCheck(method="POST")}, "http_config.method"),
        ({"http_config": HttpCheck(path="x")}, "http_config.path"),
        ({"http_config": HttpCheck(path="/a b")}, "http_config.path"),
        ({"http_config": HttpCheck(path="/a#b")}, "http_config.path"),
        (
            {"http_config": HttpCheck(expected_codes=("200", "6xx"))},
            "http_config.expected_codes[1]",
        ),
        ({"http_config": HttpCheck(expected_body="x" * 10_241)}, "http_config.expected_body"),
        ({"http_config": HttpCheck(port=65_536)}, "http_config.port"),
        (
            {"http_config": HttpCheck(header={"User-Agent": ("x",)})},
            "http_config.header.User-Agent",
        ),
        ({"http_config": HttpCheck(header={"a b": ("x",)})}, "http_config.header.a b"),
        ({"http_config": HttpCheck(header={"Host": ("a", "b")})}, "http_config.header.Host"),
        ({"http_config": HttpCheck(header={"X": ("a\r\nY: b",)})}, "http_config.header.X[0]"),
        ({"tcp_config": TcpCheck(method="syn")}, "tcp_config.method"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        made(**fields)
    assert [problem.pointer for problem in refused.value.problems] == [pointer]


def test_everything_wrong_is_said_at_once() -> None:
    problems = health_check_problems(
        {"name": "", "interval": "x", "http_config": HttpCheck(path="", port=-1)}
    )
    assert {problem.pointer for problem in problems} == {
        "name", "address", "interval", "http_config.path", "http_config.port",
    }  # fmt: skip


def test_all_regions_are_all_and_each_counts_once() -> None:
    assert made(check_regions=("ALL_REGIONS", "WEU")).regions == REGIONS
    assert made(check_regions=("WEU", "WNAM", "WEU")).regions == ("WNAM", "WEU")
    assert made().regions == ()
