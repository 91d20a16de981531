"""Walks a query: the zones that the caller may see, and a `DatasetQuery` for each dataset."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from math import ceil, floor
from typing import Any

from ariadne import ObjectType, QueryType, ScalarType, make_executable_schema
from graphql import (
    FieldNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    InlineFragmentNode,
    SelectionSetNode,
)
from graphql.execution import get_argument_values
from graphql.type import GraphQLIncludeDirective, GraphQLSkipDirective

from greenroom.analytics.graphql.datasets import (
    LISTED,
    OPERATORS,
    Comparison,
    Dataset,
    DatasetAnswer,
    DatasetQuery,
    Every,
    OrderBy,
    Some,
    TooLong,
    Where,
)
from greenroom.analytics.question import QuestionRefused
from greenroom.errors import StorageFailed
from greenroom.model.configuration import Configuration
from greenroom.model.zone import ACCOUNT_ID
from greenroom.web.authenticator import Caller
from greenroom.web.refusals import Refused

# The GraphQL schema, generated from the table of datasets.

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
    return max(0, min(seconds, (1 << 32) - 1))


PARSERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "uint64": _whole(0, UINT64_MAX),
    "int64": _whole(-(1 << 63), (1 << 63) - 1),
    "float64": _fraction,
    "Time": moment,
    "Date": day,
}


ZONES_MAX = 10

DATASETS_MAX = 60

CONDITIONS_MAX = 200
VALUES_MAX = 1_000


Info = GraphQLResolveInfo[Any]


class Context:
    def __init__(
        self,
        caller: Caller,
        known: Configuration,
        answers: Mapping[str, DatasetAnswer],
        deadline_s: float,
    ) -> None:
        """`deadline_s` on the clock of `time.monotonic`."""
        self.caller = caller
        self.known = known
        self.answers = answers
        self.deadline_s = deadline_s
        self.datasets = 0
        self.incomplete_minutes = 0
        self.generated_minutes = 0


def refusal(message: str, code: str = "") -> GraphQLError:
    return GraphQLError(message, extensions={"code": code} if code else None)


def make_schema(datasets: Sequence[Dataset]) -> GraphQLSchema:
    by_field = {one.name: _settings(one) for one in datasets}

    def zones(
        _parent: Any, info: Info, filter: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        return [
            {"zoneTag": zone_id, "settings": by_field}
            for zone_id in _zones(info.context, filter or {})
        ]

    def accounts(
        _parent: Any, info: Info, filter: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        _require(info.context.caller, None)
        op, wanted = _one_condition("account", filter or {})
        _authorized("account", op, wanted, [ACCOUNT_ID])
        return [{"accountTag": ACCOUNT_ID}] if _tag_matches(ACCOUNT_ID, op, wanted) else []

    return schema(datasets, lambda *_: {}, zones, accounts, _dataset_resolver)


def _settings(one: Dataset) -> dict[str, Any]:
    limits = one.limits
    return {
        "enabled": True,
        "availableFields": one.paths(),
        "maxDuration": limits.max_duration_s,
        "maxNumberOfFields": limits.max_fields,
        "maxPageSize": limits.max_page_size,
        "notOlderThan": limits.not_older_than_s,
    }


# -- zones -----------------------------------------------------------------------------------------


def _zones(context: Context, filter: Mapping[str, Any]) -> list[str]:
    """A requested zone that is missing or may not be seen is an authorization error."""
    op, wanted = _one_condition("zone", filter)
    _require(
        context.caller, context.caller.token.zone_ids[0] if context.caller.token.zone_ids else None
    )
    visible = [zone_id for zone_id in sorted(context.known.zones) if context.caller.sees(zone_id)]
    _authorized("zone", op, wanted, visible)
    found = [zone_id for zone_id in visible if _tag_matches(zone_id, op, wanted)]
    if len(found) > ZONES_MAX:
        raise refusal(
            f"a query is answered for at most {ZONES_MAX} zones, not {len(found)}: filter by"
            " zoneTag"
        )
    return found


def _authorized(kind: str, op: str, wanted: Any, visible: Sequence[str]) -> None:
    if op in ("", "_in") and wanted is not None:
        for tag in wanted if isinstance(wanted, list) else [wanted]:
            if tag not in visible:
                raise refusal(
                    f"{kind} {str(tag)[:100]!r} is not authorized for this token, or does not exist",
                    "authz",
                )


def _require(caller: Caller, zone_id: str | None) -> None:
    try:
        caller.require("analytics", zone_id)
    except Refused as refused:
        raise refusal(str(refused), "authz") from None


def _one_condition(kind: str, filter: Mapping[str, Any]) -> tuple[str, Any]:
    """Value None for no condition."""
    given = [
        (name.removeprefix(f"{kind}Tag"), value)
        for name, value in filter.items()
        if value is not None
    ]
    if len(given) > 1:
        raise refusal(f"the filter of {kind}s takes one condition, not {len(given)}")
    return given[0] if given else ("", None)


def _tag_matches(tag: str, op: str, wanted: Any) -> bool:
    if wanted is None:
        return True
    if op == "_in":
        return tag in wanted
    return tag > str(wanted) if op == "_gt" else tag == wanted


# -- datasets --------------------------------------------------------------------------------------


def _dataset_resolver(dataset: Dataset) -> Callable[..., Any]:
    keys = {
        f"{name}{suffix}": (name, suffix, kind)
        for name, kind in dataset.filters.items()
        for suffix in OPERATORS[kind]
    }

    def resolve(
        zone: Mapping[str, Any], info: Info, limit: int, **given: Any
    ) -> list[dict[str, Any]]:
        context: Context = info.context
        context.datasets += 1
        if context.datasets > DATASETS_MAX:
            raise refusal(f"a query has at most {DATASETS_MAX} datasets, over all zones")
        selected = list(dict.fromkeys(_selected(info, dataset)))
        limits = dataset.limits
        if not 1 <= limit <= limits.max_page_size:
            raise refusal(
                f"limit must be from 1 to the page size of {limits.max_page_size}, not {limit}"
            )
        if len(selected) > limits.max_fields:
            raise refusal(
                f"too many fields: {len(selected)} are selected, at most {limits.max_fields} are"
                " answered"
            )
        order = [OrderBy(*order_of(dataset, token)) for token in given.get("orderBy") or ()]
        where = _where(given.get("filter") or {}, keys, [0])
        query = DatasetQuery(
            dataset, zone["zoneTag"], where, order, limit, selected, context.deadline_s
        )
        return _answered(context, query)

    return resolve


def _answered(context: Context, query: DatasetQuery) -> list[dict[str, Any]]:
    if time.monotonic() >= context.deadline_s:
        raise refusal(
            "the query takes too long: try a reduced time period, fewer datasets or wider buckets"
        )
    answer = context.answers.get(query.dataset.name)
    if answer is None:
        raise refusal(f"{query.dataset.name} is not recorded by this process")
    try:
        found = answer(query)
    except QuestionRefused as error:
        raise refusal(str(error)) from None
    except TooLong:
        raise refusal(
            "the query takes too long: try a reduced time period or wider buckets"
        ) from None
    except StorageFailed:
        raise refusal("analytics cannot be read at the moment; the log says why") from None
    context.incomplete_minutes += found.incomplete_minutes
    context.generated_minutes += found.generated_minutes
    return found.rows


def _where(
    filter: Mapping[str, Any], keys: Mapping[str, tuple[str, str, str]], count: list[int]
) -> Where:
    """Commas mean AND; nulls, empty objects, and AND and OR of nothing are ignored."""
    parts: list[Where] = []
    for name, value in filter.items():
        if value is None or (name in ("AND", "OR") and not value):
            continue
        if name in ("AND", "OR"):
            inner = tuple(_where(item, keys, count) for item in value)
            parts.append(Every(inner) if name == "AND" else Some(inner))
            continue
        count[0] += 1
        if count[0] > CONDITIONS_MAX:
            raise refusal(f"a filter has at most {CONDITIONS_MAX} conditions")
        if isinstance(value, list) and len(value) > VALUES_MAX:
            raise refusal(f"{name} takes at most {VALUES_MAX} values, not {len(value)}")
        field, op, kind = keys[name]
        parts.append(Comparison(field, op, _whole_seconds(op, value) if kind == "Time" else value))
    return parts[0] if len(parts) == 1 else Every(tuple(parts))


def _whole_seconds(op: str, value: float | list[float]) -> int | list[int]:
    return (
        [whole_second(one, op) for one in value]
        if isinstance(value, list)
        else whole_second(value, op)
    )


# -- what is selected ------------------------------------------------------------------------------


def _selected(info: Info, dataset: Dataset) -> Iterator[tuple[str, str]]:
    for node in info.field_nodes:
        for name, inner in _fields(info, node.selection_set):
            if name == "dimensions" or name in dataset.aggregates:
                yield from (
                    (name, found) for found, _ in _fields(info, inner) if not found.startswith("__")
                )
            elif not name.startswith("__"):
                yield "", name


def _fields(
    info: Info, selection: SelectionSetNode | None
) -> Iterator[tuple[str, SelectionSetNode | None]]:
    for node in selection.selections if selection else ():
        if not isinstance(node, (FieldNode, FragmentSpreadNode, InlineFragmentNode)) or _left_out(
            node
        ):
            continue
        if isinstance(node, FieldNode):
            yield node.name.value, node.selection_set
        elif isinstance(node, FragmentSpreadNode):
            yield from _fields(info, info.fragments[node.name.value].selection_set)
        else:
            yield from _fields(info, node.selection_set)


def _left_out(node: FieldNode | FragmentSpreadNode | InlineFragmentNode) -> bool:
    for found in node.directives or ():
        if found.name.value == "skip" and get_argument_values(GraphQLSkipDirective, found)["if"]:
            return True
        if (
            found.name.value == "include"
            and not get_argument_values(GraphQLIncludeDirective, found)["if"]
        ):
            return True
    return False
