"""With any damage to its bytes, a journal never gives back a payload that was not appended, nor in
another order.
"""

import struct
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.errors import StorageFailed
from greenroom.ledgers import journal as journal_module
from greenroom.ledgers.journal import (
    FRAME_HEAD,
    HEADER_SIZE,
    PAYLOAD_MAX,
    FileJournal,
    header,
)

payloads = st.lists(
    st.binary(min_size=1, max_size=60) | st.integers(1, 3).map(lambda n: bytes(n * 20)),
    min_size=1,
    max_size=12,
)
quick = settings(deadline=None)


class Written:
    """A journal of these payloads, closed, in a folder of its own, and where each frame begins and
    ends.
    """

    def __init__(self, texts: list[bytes]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal"
        self.texts = texts
        journal = FileJournal(self.path)
        self.bounds = []
        for text in texts:
            begin = journal.size or HEADER_SIZE
            journal.append(text)
            self.bounds.append((begin, journal.size))
        journal.close()

    def __enter__(self) -> "Written":
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()

    def untouched(self, begin: int, end: int) -> list[bytes]:
        """Payloads of the frames that share no byte with this stretch."""
        return [
            text
            for text, (first, last) in zip(self.texts, self.bounds, strict=True)
            if last <= begin or first >= end
        ]

    def read(self) -> tuple[list[bytes], FileJournal]:
        journal = FileJournal(self.path)
        return list(journal.replay()), journal

    def goes_on(self, kept: list[bytes], journal: FileJournal) -> None:
        """After any accident the journal takes new frames, and the next start is clean."""
        journal.append(b"after")
        journal.close()
        found, journal = self.read()
        assert found == [*kept, b"after"]
        assert journal.damage == ()
        assert journal.size == self.path.stat().st_size
        journal.close()


@given(payloads)
@quick
def test_what_was_appended_comes_back_in_order(texts: list[bytes]) -> None:
    with Written(texts) as written:
        found, journal = written.read()
        assert found == texts
        assert journal.damage == ()
        written.goes_on(texts, journal)


@given(payloads, st.data())
@quick
def test_a_file_cut_anywhere_gives_exactly_the_frames_that_are_whole(
    texts: list[bytes], data: st.DataObject
) -> None:
    with Written(texts) as written:
        length = data.draw(st.integers(0, written.bounds[-1][1]))
        with written.path.open("r+b") as file:
            file.truncate(length)
        found, journal = written.read()
        assert found == [
            text for text, (_, end) in zip(texts, written.bounds, strict=True) if end <= length
        ]
        assert journal.damage == (), "a cut end is what a kill leaves, not damage"
        assert journal.size in (0, written.path.stat().st_size), (
            "half a frame is cut off at once, half a header before the first frame"
        )
        written.goes_on(found, journal)


@given(payloads, st.data())
@quick
def test_a_flipped_bit_costs_at_most_the_frame_it_is_in(
    texts: list[bytes], data: st.DataObject
) -> None:
    with Written(texts) as written:
        content = bytearray(written.path.read_bytes())
        place = data.draw(st.integers(HEADER_SIZE, len(content) - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
        written.path.write_bytes(content)
        found, journal = written.read()
        assert found == written.untouched(place, place + 1)
        written.goes_on(found, journal)


@given(payloads, st.data())
@quick
def test_a_stretch_overwritten_costs_at_most_the_frames_it_touches(
    texts: list[bytes], data: st.DataObject
) -> None:
    with Written(texts) as written:
        content = written.path.read_bytes()
        begin = data.draw(st.integers(HEADER_SIZE, len(content) - 1))
        end = data.draw(st.integers(begin, len(content)))
        junk = data.draw(
            st.binary(min_size=end - begin, max_size=end - begin) | st.just(bytes(end - begin))
        )
        written.path.write_bytes(content[:begin] + junk + content[end:])
        found, journal = written.read()
        kept = written.untouched(begin, end)
        assert [text for text in found if text in texts] == found
        assert is_subsequence(kept, found)
        assert is_subsequence(found, texts)
        written.goes_on(found, journal)


@given(payloads, st.binary(max_size=100) | st.integers(0, 100).map(bytes))
@quick
def test_junk_behind_the_end_yields_nothing(texts: list[bytes], junk: bytes) -> None:
    with Written(texts) as written:
        with written.path.open("ab") as file:
            file.write(junk)
        found, journal = written.read()
        assert found == texts
        written.goes_on(texts, journal)


@given(payloads, st.integers(0, HEADER_SIZE * 8 - 1))
@quick
def test_a_damaged_header_costs_no_frame(texts: list[bytes], bit: int) -> None:
    with Written(texts) as written:
        content = bytearray(written.path.read_bytes())
        content[bit // 8] ^= 1 << bit % 8
        written.path.write_bytes(content)
        found, journal = written.read()
        assert found == texts
        assert [(damage.offset, damage.length) for damage in journal.damage] == [(0, HEADER_SIZE)]
        written.goes_on(texts, journal)


@given(st.binary(max_size=200))
@quick
def test_a_file_that_is_no_journal_is_refused_and_left_alone(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        path.write_bytes(content)
        if header().startswith(content) or not any(content):
            journal = FileJournal(path)
            assert list(journal.replay()) == []
            journal.close()
        else:
            with pytest.raises(StorageFailed, match="is not a greenroom journal"):
                FileJournal(path)
            assert path.read_bytes() == content


def is_subsequence(short: list[bytes], long: list[bytes]) -> bool:
    rest = iter(long)
    return all(item in rest for item in short)


def test_big_frames_are_found_behind_damage_that_hides_their_neighbours_length(
    tmp_path: Path,
) -> None:
    """The search for the next intact frame crosses the borders of what is read at once."""
    texts = [bytes([n]) * (PAYLOAD_MAX - n) for n in range(1, 4)] + [b"last"]
    journal = FileJournal(tmp_path / "journal")
    for text in texts:
        journal.append(text)
    journal.close()
    with (tmp_path / "journal").open("r+b") as file:
        file.seek(HEADER_SIZE)
        file.write(b"\xff" * FRAME_HEAD.size)
    journal = FileJournal(tmp_path / "journal")
    assert list(journal.replay()) == texts[1:]
    assert journal.damage[0].offset == HEADER_SIZE
    assert journal.damage[0].length == FRAME_HEAD.size + len(texts[0])


def test_a_damaged_payload_needs_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "RESYNC_BYTES_MAX", 0)
    journal = FileJournal(tmp_path / "journal")
    for text in (b"first", b"hit", b"last"):
        journal.append(text)
    journal.close()
    (tmp_path / "journal").write_bytes((tmp_path / "journal").read_bytes().replace(b"hit", b"HIT"))
    assert list(FileJournal(tmp_path / "journal").replay()) == [b"first", b"last"]


def test_the_search_behind_damage_ends_however_the_bytes_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that look like a length everywhere: the work is bounded, the rest is given up, nothing
    wrong comes out.
    """
    monkeypatch.setattr(journal_module, "RESYNC_BYTES_MAX", 1 << 20)
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"first")
    journal.append(b"hit")
    end = journal.size
    journal.append(struct.pack(">I", 70_000) * 100_000)
    journal.close()
    with (tmp_path / "journal").open("r+b") as file:
        file.seek(end - len(b"hit") - FRAME_HEAD.size)
        file.write(b"\xff" * (FRAME_HEAD.size * 2 + len(b"hit")))
    journal = FileJournal(tmp_path / "journal")
    assert list(journal.replay()) == [b"first"]
    assert len(journal.damage) == 1
    journal.append(b"next")
    assert list(journal.replay()) == [b"first", b"next"]


def test_the_format_is_the_documented_one(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"hello")
    begin = b"GREENJNL" + (1).to_bytes(4, "big")
    head = begin + zlib.crc32(begin).to_bytes(4, "big")
    assert (tmp_path / "journal").read_bytes() == head + (5).to_bytes(4, "big") + zlib.crc32(
        b"hello", 5
    ).to_bytes(4, "big") + b"hello"
