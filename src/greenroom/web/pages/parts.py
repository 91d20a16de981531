"""Running parts of a process that pages show, by typed keys."""

from typing import Any, Generic, Self, TypeVar, cast

T = TypeVar("T")


class PagePart(Generic[T]):
    def __init__(self, name: str) -> None:
        self.name = name


class PageParts:
    def __init__(self) -> None:
        self._of: dict[PagePart[Any], Any] = {}

    def put(self, key: PagePart[T], part: T | None) -> Self:
        self._of[key] = part
        return self

    def find(self, key: PagePart[T]) -> T | None:
        return cast("T | None", self._of.get(key))

    def __getitem__(self, key: PagePart[T]) -> T:
        """Raises LookupError."""
        found = self.find(key)
        if found is None:
            raise LookupError(f"this process has no part {key.name!r}")
        return found
