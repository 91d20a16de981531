"""Where frames of a WebSocket end, however their bytes are cut, and the frames that say goodbye."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from greenroom.gateway.wire.websocket import (
    FRAMES_MAX,
    TRY_AGAIN_LATER,
    FrameCount,
    close_frame,
)


def frame(payload: bytes, masked: bool, opcode: int = 2) -> bytes:
    size = len(payload)
    length = (
        bytes([size])
        if size < 126
        else b"\x7e" + size.to_bytes(2, "big")
        if size < 65_536
        else b"\x7f" + size.to_bytes(8, "big")
    )
    first = bytes([length[0] | 0x80]) + length[1:] if masked else length
    return bytes([0x80 | opcode]) + first + (b"mask" if masked else b"") + payload


FRAMES = st.lists(
    st.builds(frame, st.sampled_from([0, 1, 125, 126, 127, 70_000]).map(bytes), st.booleans()),
    max_size=6,
)


@given(
    FRAMES,
    st.lists(st.integers(min_value=0, max_value=300_000), max_size=8),
    st.integers(min_value=0, max_value=20),
)
def test_a_goodbye_fits_exactly_between_two_frames(
    frames: list[bytes], cuts: list[int], short: int
) -> None:
    whole = b"".join(frames)
    ends = {sum(len(one) for one in frames[:count]) for count in range(len(frames) + 1)}
    sent = whole[: len(whole) - short] if short <= len(whole) else whole
    places = sorted({min(cut, len(sent)) for cut in cuts} | {0, len(sent)})
    counted = FrameCount()
    assert counted.between
    for begin, end in pairwise(places):
        counted.feed(sent[begin:end])
        assert counted.between == (end in ends)


def test_more_frames_at_once_than_programs_send_are_not_counted_any_more() -> None:
    counted = FrameCount()
    counted.feed(frame(b"", False) * FRAMES_MAX)
    assert counted.between
    counted.feed(frame(b"", False) * (FRAMES_MAX + 1))
    assert not counted.between
    counted.feed(frame(b"", False))
    assert not counted.between


def test_a_goodbye_is_a_closing_frame_with_the_code_masked_for_servers() -> None:
    assert close_frame(TRY_AGAIN_LATER) == b"\x88\x02\x03\xf5"
    masked = close_frame(TRY_AGAIN_LATER, b"\x01\x02\x03\x04")
    assert masked[:6] == b"\x88\x82\x01\x02\x03\x04"
    assert bytes(byte ^ b"\x01\x02"[place] for place, byte in enumerate(masked[6:])) == b"\x03\xf5"
