"""Frames of SPOE: what is written is read back, and no bytes do anything but be read or refused."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.proxies.spoe import frames
from greenroom.proxies.spoe.frames import BadFrame, SpoeFrame

NAMES = st.binary(min_size=1, max_size=20)
READERS: list[Callable[[bytes], object]] = [
    lambda data: frames.number(data, 0),
    lambda data: frames.string(data, 0),
    lambda data: frames.value(data, 0),
    lambda data: frames.pairs(data, 0),
    frames.headers,
    SpoeFrame,
    frames.message,
]


@given(st.integers(0, 2**64 - 1))
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    written = frames.number_bytes(number)
    assert frames.number(b"?" + written + b"rest", 1) == (number, 1 + len(written))
    for end in range(len(written)):
        with pytest.raises(BadFrame):
            frames.number(written[:end], 0)


def test_numbers_are_spelled_as_the_protocol_says() -> None:
    """Values at the borders, worked out by hand from the description of the protocol."""
    spelled = {
        0: "00",
        239: "ef",
        240: "f000",
        241: "f100",
        2287: "ff7f",
        2288: "f08000",
        264_431: "ffff7f",
        264_432: "f0808000",
    }
    assert {number: frames.number_bytes(number).hex() for number in spelled} == spelled


@given(
    st.dictionaries(
        NAMES,
        st.binary(max_size=300) | st.booleans() | st.integers(0, 2**32 - 1),
        max_size=frames.ARGUMENTS_MAX,
    )
)
def test_pairs_are_read_as_they_were_written(pairs: dict[bytes, bytes | bool | int]) -> None:
    assert frames.pairs(frames.pairs_bytes(pairs), 0) == pairs


@given(st.lists(st.tuples(NAMES, st.binary(max_size=300))))
def test_headers_are_read_as_they_were_written(pairs: list[tuple[bytes, bytes]]) -> None:
    packed = b"".join(
        [frames.string_bytes(name) + frames.string_bytes(text) for name, text in pairs]
    )
    assert frames.headers(packed + b"\0\0") == pairs
    for broken in (packed, packed + b"\0", packed + b"\0\0\0", packed + b"\0\x01x"):
        with pytest.raises(BadFrame):
            frames.headers(broken)


@given(st.sampled_from(READERS), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(BadFrame):
        read(data)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"\x00", None),
        (b"\x01", False),
        (b"\x11", True),
        (b"\x02\x05", 5),
        (b"\x05\xf0\x00", 240),
        (b"\x06\xc0\x00\x02\x01", "192.0.2.1"),
        (b"\x07" + bytes.fromhex("20010db8000000000000000000000001"), "2001:db8:0:0:0:0:0:1"),
        (b"\x08\x02ab", b"ab"),
        (b"\x09\x00", b""),
    ],
)
def test_every_type_of_value_is_read(written: bytes, read: object) -> None:
    assert frames.value(written, 0) == (read, len(written))
    for end in range(len(written)):
        with pytest.raises(BadFrame):
            frames.value(written[:end], 0)


def test_what_two_programs_could_read_differently_is_refused() -> None:
    twice = frames.pairs_bytes({b"a": 1}) * 2
    with pytest.raises(BadFrame):
        frames.pairs(twice, 0)
    one = frames.string_bytes(b"decide") + b"\0"
    with pytest.raises(BadFrame, match="more than one"):
        frames.message(one + one)
    for flags in (0, 2):
        with pytest.raises(BadFrame) as refused:
            SpoeFrame(b"\x03\0\0\0" + bytes((flags,)) + b"\x01\x01")
        assert refused.value.status == frames.FRAGMENTED
