"""The GraphQL schema, generated from the table of datasets."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from math import ceil, floor
from typing import Any

from ariadne import ObjectType, QueryType, ScalarType, make_executable_schema
from graphql import GraphQLSchema

from greenroom.analytics.graphql.datasets import LISTED, OPERATORS, Dataset

SCALARS = ("string", "uint64", "int64", "float64", "Time", "Date")
"""Clients declare variables with these names."""

UINT64_MAX = (1 << 64) - 1

FieldResolver = Callable[..., Any]


def schema(
    datasets: Iterable[Dataset],
    viewer: FieldResolver,
    zones: FieldResolver,
    accounts: FieldResolver,
    dataset: Callable[[Dataset], FieldResolver],
) -> GraphQLSchema:
    found = tuple(datasets)
    query, of_viewer, of_zone = QueryType(), ObjectType("viewer"), ObjectType("zone")
    query.set_field("viewer", viewer)
    of_viewer.set_field("zones", zones)
    of_viewer.set_field("accounts", accounts)
    for one in found:
        of_zone.set_field(one.name, dataset(one))
    return make_executable_schema(sdl(found), query, of_viewer, of_zone, *map(_scalar, SCALARS))


def sdl(datasets: Iterable[Dataset]) -> str:
    found = tuple(datasets)
    fields = "\n".join(_dataset_field(one) for one in found)
    settings = "\n".join(f"  {one.name}: Settings!" for one in found)
    return "\n".join(
        [
            *(f"scalar {name}" for name in SCALARS),
            "type Query { viewer: viewer! }",
            '"What the token may see."',
            "type viewer {",
            "  zones(filter: ZoneFilter_InputObject): [zone!]!",
            "  accounts(filter: AccountFilter_InputObject): [account!]!",
            "}",
            (
                "input ZoneFilter_InputObject { zoneTag: string  zoneTag_in: [string!]  zoneTag_gt:"
                " string }"
            ),
            (
                "input AccountFilter_InputObject { accountTag: string  accountTag_in: [string!] "
                " accountTag_gt: string }"
            ),
            "type account { accountTag: string! }",
            f"type zone {{\n  zoneTag: string!\n  settings: ZoneSettings!\n{fields}\n}}",
            f"type ZoneSettings {{\n{settings}\n}}",
            (
                "type Settings { availableFields: [string!]!  enabled: Boolean!  maxDuration:"
                " int64!  maxNumberOfFields: int64!"
            ),
            "  maxPageSize: int64!  notOlderThan: int64! }",
            *(line for one in found for line in _dataset_types(one)),
        ]
    )


def _dataset_field(one: Dataset) -> str:
    arguments = f"filter: {one.filter_name}, limit: uint64!, orderBy: [{one.type_name}OrderBy!]"
    return f'  "{one.help}"\n  {one.name}({arguments}): [{one.type_name}!]!'


def _dataset_types(one: Dataset) -> Iterator[str]:
    yield _type(one.type_name, _row_fields(one))
    if one.dimensions:
        yield _type(
            f"{one.type_name}Dimensions",
            [f"{name}: {kind}!" for name, kind in one.dimensions.items()],
        )
    for aggregate, names in one.aggregates.items():
        yield _type(
            _aggregate_type(one, aggregate), [f"{name}: {kind}!" for name, kind in names.items()]
        )
    tokens = [
        f"{token}_{way}" for token in map(_token, one.order_tokens()) for way in ("ASC", "DESC")
    ]
    yield f"enum {one.type_name}OrderBy {{ {' '.join(tokens)} }}"
    conditions = [
        f"{name}{suffix}: {_operand(kind, suffix)}"
        for name, kind in one.filters.items()
        for suffix in OPERATORS[kind]
    ]
    yield _type(
        one.filter_name,
        [f"AND: [{one.filter_name}!]", f"OR: [{one.filter_name}!]", *conditions],
        "input",
    )


def _row_fields(one: Dataset) -> Iterator[str]:
    yield from (f"{name}: {kind}!" for name, kind in one.fields.items())
    if one.counted:
        yield "count: uint64!"
    if one.dimensions:
        yield f"dimensions: {one.type_name}Dimensions!"
    yield from (f"{aggregate}: {_aggregate_type(one, aggregate)}!" for aggregate in one.aggregates)


def _aggregate_type(one: Dataset, aggregate: str) -> str:
    return f"{one.type_name}{aggregate[0].upper()}{aggregate[1:]}"


def _token(order: tuple[str, str]) -> str:
    return "_".join(part for part in order if part)


def order_of(one: Dataset, token: str) -> tuple[str, str, bool]:
    stem, _, way = token.rpartition("_")
    aggregate, name = next(order for order in one.order_tokens() if _token(order) == stem)
    return aggregate, name, way == "DESC"


def _operand(kind: str, suffix: str) -> str:
    if kind.startswith("["):
        return kind if suffix in LISTED or suffix in ("", "_neq") else "string"
    return f"[{kind}!]" if suffix in LISTED else kind


def _type(name: str, fields: Iterable[str], word: str = "type") -> str:
    return f"{word} {name} {{\n  " + "\n  ".join(fields) + "\n}"


# -- scalars ---------------------------------------------------------------------------------------


def _scalar(name: str) -> ScalarType:
    return ScalarType(name, value_parser=PARSERS[name])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {value!r}")
    return value


def _whole(lowest: int, highest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = (
            int(value)
            if isinstance(value, str)
            and value.lstrip("-").isascii()
            and value.lstrip("-").isdigit()
            else value
        )
        if (
            isinstance(number, bool)
            or not isinstance(number, int)
            or not lowest <= number <= highest
        ):
            raise ValueError(f"must be a whole number from {lowest} to {highest}, not {value!r}")
        return number

    return parse


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"must be a number, not {value!r}")
    return float(value)


def moment(value: Any) -> float:
    """RFC 3339 as Unix seconds with their fraction."""
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError(f"must be a time such as 2030-01-01T10:00:00Z, not {value!r}")
    try:
        found = datetime.fromisoformat(value)
        if "T" not in value.upper() and " " not in value:
            raise ValueError
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        seconds = found.timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"must be a time such as 2030-01-01T10:00:00Z, not {value!r}") from None
    return _bounded(seconds)


def whole_second(seconds: float, op: str) -> int:
    """The whole second that makes this comparison equivalent."""
    return floor(seconds) if op in ("_gt", "_leq") else ceil(seconds)


def day(value: Any) -> int:
    """`YYYY-MM-DD` as Unix seconds of its begin."""
    try:
        found = (
            date.fromisoformat(value)
            if isinstance(value, str) and len(value) == len("2030-01-01")
            else None
        )
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f"must be a date such as 2030-01-01, not {value!r}")
    return int(_bounded(datetime(found.year, found.month, found.day, tzinfo=UTC).timestamp()))


def _bounded(seconds: float) -> float:
    """1970 to 2106."""
    return max(0, min(seconds, (1 << 32) - 1))


PARSERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "uint64": _whole(0, UINT64_MAX),
    "int64": _whole(-(1 << 63), (1 << 63) - 1),
    "float64": _fraction,
    "Time": moment,
    "Date": day,
}
