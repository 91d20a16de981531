"""Reads queries of any client. Published clients declare the same variable as `string`, `String!`,
`Time!` or a filter type that may not exist, so every variable is replaced by its value as its place
requires, and the query is validated without variables. Outsiders choose the size of a query, so it
is limited before any slower work.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from graphql import (
    REMOVE,
    ArgumentNode,
    BooleanValueNode,
    DocumentNode,
    EnumValueNode,
    FieldNode,
    FloatValueNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLEnumType,
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    NameNode,
    Node,
    NullValueNode,
    ObjectFieldNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    StringValueNode,
    TypeInfo,
    TypeInfoVisitor,
    ValueNode,
    VariableDefinitionNode,
    VariableNode,
    Visitor,
    parse,
    visit,
)
from graphql.utilities import value_from_ast_untyped

QUERY_MAX = 100_000

TOKENS_MAX = 5_000
"""The longest published query has 700, a full introspection 500."""

DEPTH_MAX = 20
"""Introspection by common tools needs 15, a dataset 5."""

FIELDS_MAX = 1_000

SAME_NAME_MAX = 20
"""Merging fields of one name takes quadratic time."""

FRAGMENTS_MAX = 50
VALUE_DEPTH_MAX = 20

VALUES_MAX = 10_000
"""Values of one query, counted at each use of a fragment."""

_MISSING = object()


def read(query: str) -> DocumentNode:
    """Raises GraphQLError when the query is invalid or too large."""
    if len(query) > QUERY_MAX:
        raise GraphQLError(f"the query has more than {QUERY_MAX} characters")
    try:
        return parse(query, max_tokens=TOKENS_MAX)
    except RecursionError:
        raise GraphQLError("the query is nested too deeply") from None


def chosen(document: DocumentNode, name: str | None) -> DocumentNode:
    """Raises GraphQLError."""
    operations = [
        node for node in document.definitions if isinstance(node, OperationDefinitionNode)
    ]
    matching = [
        node for node in operations if name in (None, "") or (node.name and node.name.value == name)
    ]
    if not matching:
        raise GraphQLError(
            f"unknown operation {name!r}" if operations else "the query has no operation"
        )
    if len(matching) > 1:
        raise GraphQLError("operationName must say which operation is meant")
    if matching[0].operation is not OperationType.QUERY:
        raise GraphQLError(f"only queries are answered, not a {matching[0].operation.value}")
    others = [
        node for node in document.definitions if not isinstance(node, OperationDefinitionNode)
    ]
    return DocumentNode(definitions=(matching[0], *others))


# -- limits ----------------------------------------------------------------------------------------


def check_size(document: DocumentNode) -> None:
    """Raises GraphQLError. Takes time linear in the text."""
    fragments = {
        node.name.value: node.selection_set
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    if len(fragments) > FRAGMENTS_MAX:
        raise GraphQLError(f"the query has more than {FRAGMENTS_MAX} fragments")
    sizes = _Sizes(fragments)
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            fields, depth, _ = sizes.of(node.selection_set)
            if depth > DEPTH_MAX:
                raise GraphQLError(f"the query is deeper than {DEPTH_MAX} levels")
            if fields > FIELDS_MAX:
                raise GraphQLError(f"the query has more than {FIELDS_MAX} fields")


class _Sizes:
    """Measures each fragment once, however often it is used."""

    def __init__(self, fragments: Mapping[str, SelectionSetNode]) -> None:
        self._fragments = fragments
        self._known: dict[str, tuple[int, int, Counter[str]]] = {}
        self._open: set[str] = set()

    def of(self, selection: SelectionSetNode | None) -> tuple[int, int, Counter[str]]:
        fields = depth = 0
        names: Counter[str] = Counter()
        for node in selection.selections if selection is not None else ():
            if isinstance(node, FragmentSpreadNode):
                more, deeper, also = self._fragment(node.name.value)
            elif isinstance(node, InlineFragmentNode):
                more, deeper, also = self.of(node.selection_set)
            elif isinstance(node, FieldNode):
                more, deeper, _ = self.of(node.selection_set)
                more, deeper, also = (
                    more + 1,
                    deeper + 1,
                    Counter([(node.alias or node.name).value]),
                )
            else:
                continue
            fields, depth = fields + more, max(depth, deeper)
            for name, count in also.items():
                names[name] += count
                if names[name] > SAME_NAME_MAX:
                    raise GraphQLError(
                        f"a selection has more than {SAME_NAME_MAX} fields of the same name"
                    )
        return fields, depth, names

    def _fragment(self, name: str) -> tuple[int, int, Counter[str]]:
        if name in self._open:
            raise GraphQLError(f"fragment {name} contains itself")
        if name not in self._known:
            self._open.add(name)
            self._known[name] = self.of(self._fragments.get(name))
            self._open.discard(name)
        return self._known[name]


# -- variables -------------------------------------------------------------------------------------


def without_variables(
    schema: GraphQLSchema, document: DocumentNode, values: Mapping[str, Any]
) -> DocumentNode:
    """Raises GraphQLError."""
    known: dict[str, Any] = dict(values)
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            for definition in node.variable_definitions or ():
                name = definition.variable.name.value
                default = (
                    _MISSING
                    if definition.default_value is None
                    else value_from_ast_untyped(definition.default_value)
                )
                known[name] = values.get(name, default)
    info = TypeInfo(schema)
    filled: DocumentNode = visit(document, TypeInfoVisitor(info, _Filling(info, known)))
    return filled


class _Filling(Visitor):
    def __init__(self, info: TypeInfo, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._info = info
        self._values = values
        self._left = VALUES_MAX

    def enter_variable_definition(self, _node: VariableDefinitionNode, *_: Any) -> Any:
        return REMOVE

    def enter_argument(self, node: ArgumentNode, *_: Any) -> Any:
        return self._dropped(node.value)

    def enter_object_field(self, node: ObjectFieldNode, *_: Any) -> Any:
        return self._dropped(node.value)

    def _dropped(self, value: ValueNode) -> Any:
        return (
            REMOVE if isinstance(value, VariableNode) and self._value(value) is _MISSING else None
        )

    def enter_variable(self, node: VariableNode, *_: Any) -> Node:
        value = self._value(node)
        self._left -= _count(value, self._left)
        if self._left < 0:
            raise GraphQLError(
                f"the variables hold more than {VALUES_MAX} values where they are used"
            )
        return literal(None if value is _MISSING else value, self._info.get_input_type())

    def _value(self, node: VariableNode) -> Any:
        name = node.name.value
        if name not in self._values:
            raise GraphQLError(f"variable ${name} is not declared and has no value")
        return self._values[name]


def _count(value: Any, most: int) -> int:
    found, todo = 1, [value]
    while todo and found <= most:
        one = todo.pop()
        inside = (
            one if isinstance(one, list) else list(one.values()) if isinstance(one, dict) else ()
        )
        found += len(inside)
        todo += [each for each in inside if isinstance(each, list | dict)]
    return found


def literal(value: Any, wanted: Any, depth: int = 0) -> ValueNode:
    """`wanted` None: unknown. Raises GraphQLError."""
    if depth > VALUE_DEPTH_MAX:
        raise GraphQLError(
            f"the value of a variable is nested deeper than {VALUE_DEPTH_MAX} levels"
        )
    if isinstance(wanted, GraphQLNonNull):
        wanted = wanted.of_type
    if value is None:
        return NullValueNode()
    if isinstance(wanted, GraphQLList):
        items = value if isinstance(value, list) else [value]
        return ListValueNode(
            values=tuple(literal(item, wanted.of_type, depth + 1) for item in items)
        )
    if isinstance(value, list):
        return ListValueNode(values=tuple(literal(item, None, depth + 1) for item in value))
    if isinstance(value, dict):
        return _object(value, wanted, depth)
    if isinstance(value, str):
        return (
            EnumValueNode(value=value)
            if isinstance(wanted, GraphQLEnumType)
            else StringValueNode(value=value)
        )
    if isinstance(value, bool):
        return BooleanValueNode(value=value)
    return (
        IntValueNode(value=str(value))
        if isinstance(value, int)
        else FloatValueNode(value=repr(value))
    )


def _object(value: Mapping[str, Any], wanted: Any, depth: int) -> ObjectValueNode:
    known = wanted.fields if isinstance(wanted, GraphQLInputObjectType) else {}
    fields = []
    for name, item in value.items():
        kind = known[name].type if name in known else None
        fields.append(
            ObjectFieldNode(name=NameNode(value=name), value=literal(item, kind, depth + 1))
        )
    return ObjectValueNode(fields=tuple(fields))
