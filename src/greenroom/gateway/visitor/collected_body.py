"""The beginning of a request's body, kept while nothing can take it yet: for an origin, or for the
form on a waiting page.
"""


class CollectedBody:
    """At most so many bytes, and what came with the last of them."""

    __slots__ = ("_missing", "_parts")

    def __init__(self, most: int) -> None:
        self._missing = most
        self._parts: list[bytes] = []

    def add(self, data: bytes, whole: bool) -> bool:
        """Keeps a part. True once: when this is the whole body, or as much as is kept."""
        self._parts.append(data)
        if self._missing <= 0:
            return False
        self._missing = 0 if whole else self._missing - len(data)
        return self._missing <= 0

    def take(self) -> bytes:
        """What there is."""
        return b"".join(self._parts)
