"""A response made by greenroom, in a form that every front end can send: status, header pairs,
body, cookie.
"""

import msgspec

HeaderPairs = tuple[tuple[bytes, bytes], ...]


class AnswerHeaders:
    """Header pairs that many answers share, without Content-Length, Connection, Date and
    Set-Cookie.

    Made once and compared by identity, so that a front end can keep the form in which it sends them
    and find it again at no cost. Of those that are made for one answer (`with_own`) that is
    `shared`, and `own` is the rest.
    """

    __slots__ = ("own", "pairs", "shared")

    def __init__(self, *pairs: tuple[bytes, bytes]) -> None:
        """Names in their usual case; values without line ends."""
        self.pairs: HeaderPairs = pairs
        self.shared = self
        self.own: HeaderPairs = ()

    def plus(self, *pairs: tuple[bytes, bytes]) -> "AnswerHeaders":
        """These and more behind them."""
        return AnswerHeaders(*self.pairs, *pairs)

    def with_own(self, *pairs: tuple[bytes, bytes]) -> "AnswerHeaders":
        """These and more behind them that only one visitor is sent."""
        found = AnswerHeaders(*self.pairs, *pairs)
        found.shared, found.own = self.shared, (*self.own, *pairs)
        return found

    def get(self, name: bytes) -> bytes | None:
        """The first value under this name, in any case; or None."""
        wanted = name.lower()
        return next((value for key, value in self.pairs if key.lower() == wanted), None)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A whole answer. `set_cookie` is a Set-Cookie value, or empty: it stands apart, because the
    rest is the same for many visitors.
    """

    status: int
    headers: AnswerHeaders
    body: bytes
    set_cookie: bytes = b""
