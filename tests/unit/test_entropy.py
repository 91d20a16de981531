"""Bits fetched in bulk: none is given twice, not even to a child process."""

import os

import pytest

from greenroom.runtime.entropy import FETCHED_BYTES, Entropy


def test_bytes_are_as_many_as_asked_and_never_the_same_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched = []

    def urandom(count: int) -> bytes:
        fetched.append(os.getrandom(count))
        return fetched[-1]

    monkeypatch.setattr("greenroom.runtime.entropy.os.urandom", urandom)
    entropy = Entropy()
    sizes = [12, 15, 1, FETCHED_BYTES, 3 * FETCHED_BYTES, *[12] * 1_000]
    taken = [entropy.take(size) for size in sizes]
    assert [len(part) for part in taken] == sizes
    assert len(fetched) < 10, "in bulk"
    whole = b"".join(fetched)
    at = 0
    for part in taken:
        at = whole.find(part, at)
        assert at >= 0, "in the order fetched, no byte twice"
        at += len(part)


@pytest.mark.parametrize("count", [1, 9, 64])
def test_words_are_short_enough_and_differ(count: int) -> None:
    entropy = Entropy()
    words = [entropy.bits(count) for _ in range(2_000)]
    assert all(0 <= word < 1 << count for word in words)
    assert any(word >> count - 1 for word in words), "the highest bit is used"
    assert len(set(words)) == 2_000 if count == 64 else len(set(words)) > 1


def test_a_forked_process_never_uses_what_its_parent_fetched() -> None:
    entropy = Entropy()
    entropy.take(12), entropy.bits(64)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(
                writing,
                b"".join(
                    [
                        *(entropy.take(12) for _ in range(10)),
                        *(entropy.bits(64).to_bytes(12) for _ in range(10)),
                    ]
                ),
            )
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    sent = os.read(reading, 240)
    os.close(reading)
    os.close(writing)
    theirs = {sent[at : at + 12] for at in range(0, 240, 12)}
    ours = {entropy.take(12) for _ in range(300)} | {
        entropy.bits(64).to_bytes(12) for _ in range(500)
    }
    assert len(theirs) == 20
    assert not theirs & ours
