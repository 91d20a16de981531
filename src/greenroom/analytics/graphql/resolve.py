"""Walks a query: the zones that the caller may see, and a `DatasetQuery` for each dataset."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
from greenroom.analytics.graphql.schema import order_of, schema, whole_second
from greenroom.analytics.question import QuestionRefused
from greenroom.errors import StorageFailed
from greenroom.model.configuration import Configuration
from greenroom.model.zone import ACCOUNT_ID
from greenroom.web.authenticator import Caller
from greenroom.web.refusals import Refused

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
    if op in ("", "_in") and wanted is not None:
        for tag in wanted if isinstance(wanted, list) else [wanted]:
            if tag not in visible:
                raise refusal(
                    f"zone {str(tag)[:100]!r} is not authorized for this token, or does not exist",
                    "authz",
                )
    found = [zone_id for zone_id in visible if _tag_matches(zone_id, op, wanted)]
    if len(found) > ZONES_MAX:
        raise refusal(
            f"a query is answered for at most {ZONES_MAX} zones, not {len(found)}: filter by"
            " zoneTag"
        )
    return found


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
    """Without those that a directive leaves out."""
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
