"""Which URLs and addresses are allowed, judged without any network."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.errors import InvalidConfig
from greenroom.outbound import OutboundPolicy, OutboundRefused, read_target
from greenroom.outbound.policy import is_public, unwrapped

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
]
INSIDE = """127.0.0.1 127.9.9.9 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.8 192.0.2.1
198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 192.88.99.1 :: ::1 ::7f00:1 ::ffff:127.0.0.1
::ffff:a9fe:a9fe ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::169.254.169.254 64:ff9b:1::1 2002:7f00:1:: 2002:a9fe:a9fe::1 2001::1 fe80::1
fc00::1 fd00::1 fec0::1 ff02::1 2001:db8::1 3fff::1 100::1 5f00::1 4000::1""".split()


@pytest.mark.parametrize("written", PUBLIC)
def test_public_addresses_are_allowed(written: str) -> None:
    assert OutboundPolicy().address_problem(ip_address(written)) == ""


@pytest.mark.parametrize("written", INSIDE)
def test_no_other_address_is_allowed(written: str) -> None:
    assert "not a public address" in OutboundPolicy().address_problem(ip_address(written))


@pytest.mark.parametrize(
    "written", ["127.0.0.1", "::ffff:127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::"]
)
def test_a_network_that_is_allowed_counts_however_the_address_is_wrapped(written: str) -> None:
    assert OutboundPolicy(allowed=("127.0.0.0/8",)).address_problem(ip_address(written)) == ""
    assert "deny" in OutboundPolicy(
        allowed=("127.0.0.0/8",), denied=("127.0.0.1",)
    ).address_problem(ip_address(written))


def test_a_public_network_can_be_denied_in_both_forms() -> None:
    assert "deny" in OutboundPolicy(denied=("8.8.8.0/24",)).address_problem(
        ip_address("::ffff:8.8.8.8")
    )
    assert "deny" in OutboundPolicy(denied=("64:ff9b::/96",)).address_problem(
        ip_address("64:ff9b::8.8.8.8")
    )


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_no_wrapping_makes_an_address_better_than_it_is(plain: IPv4Address) -> None:
    number = int(plain)
    wrapped = [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(0x64FF9B << 96 | number),
        IPv6Address(0x2002 << 112 | number << 80),
    ]
    wrapped += [IPv6Address(number)] if number > 1 else []
    assert {unwrapped(each) for each in wrapped} == {plain}
    assert {is_public(unwrapped(each)) for each in wrapped} == {is_public(plain)}


REFUSED = {
    "": "1 to 2048",
    "https://a.example/" + "x" * 2048: "1 to 2048",
    "ftp://a.example/": "begin with",
    "file:///etc/passwd": "begin with",
    "gopher://a.example/": "begin with",
    "//a.example/": "begin with",
    "a.example": "begin with",
    "https:///path": "name a host",
    "https://user@a.example/": "user name",
    "https://user:secret@a.example/": "user name",
    "https://a.example@127.0.0.1/": "user name",
    "https://a.example:0/": "port",
    "https://a.example:/": "port",
    "https://a.example:99999/": "not a URL",
    "https://a.example:8x/": "not a URL",
    "https://a exam.ple/": "plain ASCII",
    "https://a.example\\@127.0.0.1/": "plain ASCII",
    "https://a.example/\r\nHost: b": "plain ASCII",
    "https://ⓔxample.com/": "plain ASCII",
    "https://2130706433/": "four decimal numbers",
    "https://127.1/": "four decimal numbers",
    "https://0x7f.0.0.1/": "four decimal numbers",
    "https://0x7f000001/": "four decimal numbers",
    "https://0177.0.0.1/": "four decimal numbers",
    "https://127.0.0.01/": "four decimal numbers",
    "https://1.2.3.4.5/": "four decimal numbers",
    "https://a.example.0x1/": "four decimal numbers",
    "https://2130706433./": "four decimal numbers",
    "https://[fe80::1%25eth0]/": "",
    "https://[::1/": "not a URL",
    "https://a..example/": "not a host name",
    "https://-a.example/": "not a host name",
    "https://a%2eexample/": "not a host name",
}


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_that_can_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(OutboundRefused) as caught:
        read_target(url)
    assert REFUSED[url] in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://Hooks.Example.com", ("https", "hooks.example.com", 443, "/")),
        ("http://a.example:8080/x?y=1#z", ("http", "a.example", 8080, "/x?y=1")),
        ("https://[2606:4700::1]:8443/", ("https", "2606:4700::1", 8443, "/")),
        ("HTTPS://8.8.8.8/", ("https", "8.8.8.8", 443, "/")),
        ("https://xn--bcher-kva.example/", ("https", "xn--bcher-kva.example", 443, "/")),
    ],
)
def test_what_a_url_says(url: str, parts: tuple) -> None:
    target = read_target(url)
    assert (target.scheme, target.host, target.port, target.path) == parts
    assert read_target(target.url) == target


def test_schemes_and_ports_are_set_by_the_operator() -> None:
    strict = OutboundPolicy(schemes=("https",), ports=(443,))
    assert "scheme" in strict.target_problem(read_target("http://a.example/"))
    assert "port 8443" in strict.target_problem(read_target("https://a.example:8443/"))
    assert strict.target_problem(read_target("https://a.example/")) == ""
    assert OutboundPolicy(ports=()).target_problem(read_target("https://a.example:8443/")) == ""
    assert "not a public address" in OutboundPolicy().target_problem(
        read_target("http://127.0.0.1/")
    )


def test_a_policy_that_cannot_be_used_says_everything_wrong() -> None:
    with pytest.raises(InvalidConfig) as caught:
        OutboundPolicy(
            schemes=("ftp",), ports=(0,), allowed=("10.0.0.0/8", "inside"), denied=("::/129",)
        )
    assert [problem.pointer for problem in caught.value.problems] == [
        "schemes[0]",
        "ports[0]",
        "allowed[1]",
        "denied[0]",
    ]
