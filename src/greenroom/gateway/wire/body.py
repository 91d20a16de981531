"""Body framing: by length, by chunks, or until the connection ends. When a reader is `done`, `rest`
are the bytes after the body. Trailers and chunk extensions are checked for their form and dropped.
"""

import re

SIZE_LINE_MAX = 256
"""Longest line that opens a chunk: 16 digits and an extension, which is never used."""

TRAILERS_MAX = 8 * 1024

CHUNKS_FREE = 1_000
"""Programs send each small write of a short body as a chunk."""

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
_PADDED_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")


class BadBody(Exception):
    """The body cannot continue: `status` says why. The next message's start is unknown, so the
    connection must end.
    """

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class LengthBody:
    __slots__ = ("left", "rest")

    def __init__(self, length: int) -> None:
        self.left = length
        self.rest = b""

    @property
    def done(self) -> bool:
        return not self.left

    def feed(self, data: bytes) -> bytes:
        left = self.left
        if len(data) <= left:
            self.left = left - len(data)
            return data
        self.rest = data[left:]
        self.left = 0
        return data[:left]


class UntilClose:
    __slots__ = ()
    done = False
    rest = b""
    left = -1

    def feed(self, data: bytes) -> bytes:
        return data


class ChunkedBody:
    """Keeps at most one unfinished line. `average` is the least mean size of chunks after
    CHUNKS_FREE; `0` disables it.
    """

    __slots__ = (
        "_announced",
        "_average",
        "_chunks",
        "_end",
        "_kept",
        "_size_line",
        "_trailers",
        "_want",
        "done",
        "rest",
    )

    left = -1

    def __init__(self, average: int = 0, *, lenient: bool = False) -> None:
        """`lenient` is for answers, which are framed again: lines may end with LF alone, and sizes
        be padded with blanks.
        """
        self._end, self._size_line = (
            (b"\n", _PADDED_SIZE_LINE) if lenient else (b"\r\n", _SIZE_LINE)
        )
        self._average = average
        self._chunks = self._announced = 0
        self._kept = b""
        self._want = _SIZE  # bytes of the chunk still to come, or one of the states below
        self._trailers = 0
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """Returns the payload. Raises BadBody at the first byte that no strict server would
        accept.
        """
        if self._kept:
            data, self._kept = self._kept + data, b""
        payload: list[bytes] = []
        at, size = 0, len(data)
        while at < size and not self.done:
            want = self._want
            if want > 0:
                piece = data[at : at + want]
                payload.append(piece)
                at += len(piece)
                self._want = want - len(piece) or _AFTER
                continue
            end = data.find(self._end, at, at + (2 if want == _AFTER else TRAILERS_MAX))
            if end < 0:
                self._keep(data[at:])
                break
            line = data[at:end]
            at = end + len(self._end)
            self._line(line if len(self._end) == 2 else line.removesuffix(b"\r"))
        if self.done:
            self.rest = data[at:]
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _keep(self, part: bytes) -> None:
        limit = (
            1 if self._want == _AFTER else SIZE_LINE_MAX if self._want == _SIZE else TRAILERS_MAX
        )
        if (
            len(part) > limit
            or b"\n" in part
            or b"\r" in part[:-1]
            or (self._want == _AFTER and part != b"\r")
        ):
            raise BadBody(
                "a chunk is not followed by CRLF, or a line in the chunked body is too long or ends"
                " without CRLF"
            )
        self._kept = part

    def _line(self, line: bytes) -> None:
        if self._want == _AFTER:
            if line:
                raise BadBody("a chunk is longer than it says")
            self._want = _SIZE
        elif self._want == _SIZE:
            found = self._size_line.fullmatch(line) if len(line) <= SIZE_LINE_MAX else None
            if not found:
                raise BadBody("a chunk's size is not a hexadecimal number")
            self._want = int(found[1], 16) or _TRAILER_LINES
            if self._average and self._want > 0:
                self._chunks += 1
                self._announced += self._want
                if self._chunks > CHUNKS_FREE and self._announced < self._chunks * self._average:
                    raise BadBody("the chunks of the body are too small on average")
        elif line:
            self._trailers += len(line) + 2
            if self._trailers > TRAILERS_MAX or not _TRAILER.fullmatch(line):
                raise BadBody("the trailers of a chunked body are malformed or too long")
        else:
            self.done = True


_SIZE, _AFTER, _TRAILER_LINES = 0, -1, -2

Body = LengthBody | ChunkedBody | UntilClose


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


LAST_CHUNK = b"0\r\n\r\n"
