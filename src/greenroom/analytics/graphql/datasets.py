"""The table of datasets. A row is a field of a zone with its types, filter, order and limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from greenroom.analytics.metrics import DAY_S, DIMENSIONS, FLOATS, METRICS
from greenroom.analytics.question import ROWS_MAX

ORDERED = ("", "_neq", "_gt", "_lt", "_geq", "_leq", "_in", "_notin")
OPERATORS: dict[str, tuple[str, ...]] = {
    "string": (*ORDERED, "_like", "_notlike"),
    "Time": ORDERED,
    "Date": ORDERED,
    "uint64": ORDERED,
    "float64": ORDERED,
    "[string!]": ("", "_neq", "_has", "_hasall", "_hasany"),
}
"""Type of a field -> suffixes in a filter."""

LISTED = frozenset({"_in", "_notin", "_hasall", "_hasany"})


class TooLong(Exception): ...


class DatasetLimits(NamedTuple):
    """Durations in seconds."""

    max_page_size: int = ROWS_MAX
    max_duration_s: int = 31 * DAY_S
    max_fields: int = 100
    not_older_than_s: int = 31 * DAY_S


class Dataset(NamedTuple):
    """Names with their GraphQL types. A raw dataset has `fields`, a grouped one `dimensions` and
    `aggregates`.
    """

    name: str
    type_name: str
    filter_name: str
    help: str
    filters: Mapping[str, str]
    fields: Mapping[str, str] = {}
    dimensions: Mapping[str, str] = {}
    aggregates: Mapping[str, Mapping[str, str]] = {}
    counted: bool = False
    limits: DatasetLimits = DatasetLimits()

    def order_tokens(self) -> list[tuple[str, str]]:
        """The aggregate is empty for fields, dimensions and the count."""
        plain = [("", name) for name in (*self.fields, *self.dimensions)]
        counted = [("", "count")] if self.counted else []
        return (
            plain
            + counted
            + [(aggregate, name) for aggregate, names in self.aggregates.items() for name in names]
        )

    def paths(self) -> list[str]:
        """As `availableFields` shows it."""
        groups = [f"dimensions_{name}" for name in self.dimensions]
        counted = ["count"] if self.counted else []
        return [
            *self.fields,
            *counted,
            *groups,
            *(
                f"{aggregate}_{name}"
                for aggregate, names in self.aggregates.items()
                for name in names
            ),
        ]


class Comparison(NamedTuple):
    """`op` is empty for equality. Times are Unix seconds."""

    field: str
    op: str
    value: Any


class Every(NamedTuple):
    parts: "tuple[Where, ...]"


class Some(NamedTuple):
    parts: "tuple[Where, ...]"


Where = Comparison | Every | Some


class OrderBy(NamedTuple):
    aggregate: str
    name: str
    descending: bool


class DatasetQuery(NamedTuple):
    """`selected`: (aggregate, name), as in `order_tokens`."""

    dataset: Dataset
    zone_id: str
    where: Where
    order: Sequence[OrderBy]
    limit: int
    selected: Sequence[tuple[str, str]]
    deadline_s: float


class DatasetRows(NamedTuple):
    rows: list[dict[str, Any]]
    incomplete_minutes: int = 0
    generated_minutes: int = 0


DatasetAnswer = Callable[[DatasetQuery], DatasetRows]
"""Called in a worker thread. Raises `Refused` of `analytics.question`."""

_TIMES = {name: found.kind for name, found in DIMENSIONS.items()}
_GROUPS = "waitingRoomAnalyticsAdaptiveGroups"


def _kind(aggregate: str) -> str:
    return "float64" if aggregate in FLOATS else "uint64"


def _raw_kind(name: str) -> str:
    share = METRICS[name].raw
    return "float64" if share and share.digits is not None else "uint64"


def _aggregates() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for metric in METRICS.values():
        for aggregate in metric.aggregates:
            found.setdefault(aggregate, {})[metric.name] = _kind(aggregate)
    return found


ROOM_MINUTES = Dataset(
    name="waitingRoomAnalyticsAdaptive",
    type_name="ZoneWaitingRoomAnalyticsAdaptive",
    filter_name="ZoneWaitingRoomAnalyticsAdaptiveFilter_InputObject",
    help="One row for each waiting room and minute.",
    filters=_TIMES,
    fields={
        **_TIMES,
        "sampleInterval": "uint64",
        **{name: _raw_kind(name) for name, metric in METRICS.items() if metric.raw},
    },
)

ROOM_GROUPS = Dataset(
    name=_GROUPS,
    type_name="ZoneWaitingRoomAnalyticsAdaptiveGroups",
    filter_name="ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject",
    help="Minutes of waiting rooms, grouped by the dimensions that are selected.",
    filters=_TIMES,
    dimensions={**_TIMES, "sampleInterval": "uint64"},
    aggregates=_aggregates(),
    counted=True,
)

DATASETS: tuple[Dataset, ...] = (ROOM_MINUTES, ROOM_GROUPS)
