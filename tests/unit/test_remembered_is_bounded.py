"""What strangers send is remembered only while it is short: a memory of a thousand entries must not
become one of megabytes.
"""

import pytest

from greenroom.request import arrival, forwarded
from greenroom.request.arrival import HOST_MAX, read_host
from greenroom.request.forwarded import ADDRESS_MAX, parse_address

LONGEST_HOST = b".".join([b"a" * 63] * 3 + [b"a" * 60])


def test_a_long_host_is_refused_without_being_remembered() -> None:
    arrival._host.cache_clear()
    assert read_host(LONGEST_HOST + b".:65535") == LONGEST_HOST.decode()
    remembered = arrival._host.cache_info().currsize
    for number in range(50):
        assert read_host(b"%d." % number + b"a." * 8_000 + b"example") == ""
        assert read_host(b"x" * (HOST_MAX + 1 + number)) == ""
    assert arrival._host.cache_info().currsize == remembered


@pytest.mark.parametrize(
    "text", ["1" * (ADDRESS_MAX + 1), "::" + "0" * 30_000, "192.0.2.1:" + "1" * 30_000]
)
def test_a_long_address_is_not_one_and_is_not_remembered(text: str) -> None:
    forwarded._address.cache_clear()
    assert parse_address("[2001:db8:1111:2222:3333:4444:5555:6666]:65535") is not None
    assert parse_address(text) is None
    assert forwarded._address.cache_info().currsize == 1
