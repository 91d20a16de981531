"""A response made by greenroom, in a form that every front end can send."""

import msgspec

HeaderPairs = tuple[tuple[bytes, bytes], ...]


class AnswerHeaders:
    """Header pairs that answers share, without Content-Length, Connection, Date and Set-Cookie.
    Compared by identity, so that front ends can cache their bytes.
    """

    __slots__ = ("own", "pairs", "shared")

    def __init__(self, *pairs: tuple[bytes, bytes]) -> None:
        self.pairs: HeaderPairs = pairs
        self.shared = self
        self.own: HeaderPairs = ()

    def plus(self, *pairs: tuple[bytes, bytes]) -> "AnswerHeaders":
        return AnswerHeaders(*self.pairs, *pairs)

    def with_own(self, *pairs: tuple[bytes, bytes]) -> "AnswerHeaders":
        found = AnswerHeaders(*self.pairs, *pairs)
        found.shared, found.own = self.shared, (*self.own, *pairs)
        return found

    def get(self, name: bytes) -> bytes | None:
        wanted = name.lower()
        return next((value for key, value in self.pairs if key.lower() == wanted), None)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """`set_cookie`: a Set-Cookie value, or empty."""

    status: int
    headers: AnswerHeaders
    body: bytes
    set_cookie: bytes = b""
