"""Prefix sums: a Fenwick tree. Inserting or removing a size rebuilds it, which in a line happens
about once in a thousand visitors.
"""

from collections.abc import Iterable


class PartialSums:
    __slots__ = ("_sizes", "_tree")

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        self._sizes = list(sizes)
        self._tree: list[int] = []  # empty: to be built

    def add(self, index: int, change: int) -> None:
        self._sizes[index] += change
        tree = self._tree
        index += 1
        while index < len(tree):
            tree[index] += change
            index += index & -index

    def insert(self, index: int, size: int) -> None:
        self._sizes.insert(index, size)
        self._tree = []

    def remove(self, index: int) -> None:
        del self._sizes[index]
        self._tree = []

    def before(self, index: int) -> int:
        tree, total = self._tree or self._made(), 0
        while index:
            total += tree[index]
            index &= index - 1
        return total

    def find(self, place: int) -> tuple[int, int]:
        """IndexError beyond the end."""
        tree, index = self._tree or self._made(), 0
        step = 1 << (len(tree) - 1).bit_length()
        while step:
            end = index + step
            if end < len(tree) and tree[end] <= place:
                index = end
                place -= tree[end]
            step >>= 1
        if index == len(self._sizes):
            raise IndexError("behind the end")
        return index, place

    def _made(self) -> list[int]:
        tree = [0, *self._sizes]
        for index in range(1, len(tree)):
            parent = index + (index & -index)
            if parent < len(tree):
                tree[parent] += tree[index]
        self._tree = tree
        return tree
