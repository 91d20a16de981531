"""The running parts of a process that pages show, found by typed keys that their owners define."""

from typing import Any, Generic, Self, TypeVar, cast

T = TypeVar("T")


class PagePart(Generic[T]):
    """A key for a part of type T: `HEALTH = PagePart[HealthView]("health")`."""

    def __init__(self, name: str) -> None:
        self.name = name


class PageParts:
    """Parts by key. A process that lacks a part shows the pages without it."""

    def __init__(self) -> None:
        self._of: dict[PagePart[Any], Any] = {}

    def put(self, key: PagePart[T], part: T | None) -> Self:
        """Replaces an earlier part of this key."""
        self._of[key] = part
        return self

    def find(self, key: PagePart[T]) -> T | None:
        """None when the process has no such part."""
        return cast("T | None", self._of.get(key))

    def __getitem__(self, key: PagePart[T]) -> T:
        """For parts that every process has. Raises LookupError without it."""
        found = self.find(key)
        if found is None:
            raise LookupError(f"this process has no part {key.name!r}")
        return found
