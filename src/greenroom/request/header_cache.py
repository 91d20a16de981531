"""A cache of checked header lines for front ends that get no bytes, one entry per kind of browser.
The key is the lines without Cookie and X-Forwarded-For, which differ between visitors and are
checked only for control characters and size.
"""

from collections.abc import Hashable, Sequence

import msgspec

from greenroom.model.arrival_kind import HeaderSigns
from greenroom.request.admissible import signs_of
from greenroom.request.arrival import ArrivalLimits, CheckedLines, checked_value, too_large
from greenroom.request.bounded_cache import BoundedCache
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import Headers

KINDS_BYTES = 8_000_000
"""Each of two generations: about 1,000 kinds."""

KIND_MAX = 4_096
"""The longest cached lines. A browser's have 600 to 2,000 bytes."""

LINE_BYTES, BYTES_KEPT = 250, 3

CutValues = tuple[tuple[bytes, bytes], ...]


class _Kind(msgspec.Struct, frozen=True, gc=False):
    headers: Headers
    facts: dict[bytes, bytes] | None
    signs: HeaderSigns
    places: tuple[int, ...]  # of the values in `headers`
    count: int
    size: int  # without the values
    cost: int


class HeaderCache:
    """A key must tell which values were cut out where."""

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        self._kinds: BoundedCache[Hashable, _Kind] = BoundedCache(KINDS_BYTES)

    def filled(
        self, key: Hashable, values: CutValues, limits: ArrivalLimits
    ) -> CheckedLines | Refusal | None:
        """None for an unknown kind."""
        kind = self._kinds.young.get(key) or self._kinds.again(key)
        if kind is None:
            return None
        headers, facts, size = list(kind.headers), kind.facts, kind.size
        if facts is not None:
            facts = facts.copy()
        for (name, value), at in zip(values, kind.places, strict=True):
            checked = checked_value(value)
            if isinstance(checked, Refusal):
                return checked
            size += len(checked)
            headers[at] = (name, checked)
            if facts is not None:
                facts[name] = checked
        return too_large(kind.count, size, limits) or CheckedLines(
            tuple(headers), facts, kind.signs
        )

    def learn(
        self,
        key: Hashable,
        values: CutValues,
        lines: CheckedLines,
        sent: Sequence[tuple[bytes, bytes]],
    ) -> None:
        """Caches lines when their kind comes the second time; `sent` are the unchecked lines."""
        cut = sum([len(value.strip(b" \t")) for _, value in values])
        size = sum([len(name) + len(value.strip(b" \t")) + 4 for name, value in sent]) - cut
        names = [name for name, _ in lines.headers]
        if (
            size > KIND_MAX
            or not all(names.count(name) == 1 for name, _ in values)
            or not self._kinds.came_before(key)
        ):
            return
        places = tuple(names.index(name) for name, _ in values)
        signs = signs_of(lines.facts or dict(lines.headers))
        cost = size * BYTES_KEPT + len(names) * LINE_BYTES
        self._kinds.keep(
            key, _Kind(lines.headers, lines.facts, signs, places, len(sent), size, cost)
        )


_CUT = {name: (name, None) for name in (b"cookie", b"x-forwarded-for")}


def kind_of_pairs(headers: Sequence[tuple[bytes, bytes]]) -> tuple[Hashable, CutValues]:
    kind: list[Hashable] = []
    values: list[tuple[bytes, bytes]] = []
    for pair in headers:
        if pair[0] in _CUT:
            values.append(pair)
            kind.append(_CUT[pair[0]])
        else:
            kind.append(pair)
    return tuple(kind), tuple(values)
