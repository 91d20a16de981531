"""Writes a module as the compiler of the wheel understands it best: records as native classes,
constants as final.

In plain Python a msgspec record is made in a third of the time that a class of our own takes.
Compiled code makes and reads a native class in a third of the time that a msgspec record takes: it
knows where the attributes are. The source has the first, and the second is written from it when the
wheel is built, so there is one definition of each record. A record is a class of its module with
`msgspec.Struct` as its only base. It may have fields with or without defaults, properties, methods,
and the options `frozen` and `gc`; a field's default may be an empty list, dict or set, of which
every record gets its own. `problems` names everything else that msgspec would do and a native class
would not, and the build ends there.

Compiled code looks a name of its module up in a dict, unless it is final. So what is assigned once,
without a type, is made final; a constant that tests replace is given a type.
"""

import ast
from collections import Counter
from collections.abc import Iterator

OPTIONS = {"frozen", "gc"}
"""Of a record. Others say how it is spelled as JSON or the like, which a native class is not."""

BASE = "msgspec.Struct"

WRITTEN = ("__init__", "__replace__", "__eq__", "__hash__", "__repr__")
"""Methods that a native class gets here, so a record cannot have its own."""

HEADER = """
from typing import TYPE_CHECKING, Any, ClassVar, Final, final
if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
"""
"""The last one is for the compiler alone: the decorator is not called."""

# Not `acyclic`, although msgspec's are: an object that the garbage collector does not know must not
# be freed by way of CPython's trash can, which keeps what is nested deeply (a long traceback, say)
# for later by writing into the collector's part of it. mypyc 2.4 does so.

CLASS = """
@final
@mypyc_attr(free_list_len=1)
class {name}:
    __struct_fields__: ClassVar[tuple[str, ...]] = {names!r}
    def __init__(self, {parameters}) -> None:
        {assignments}
    def __replace__(self, **changes: Any) -> "{name}":
        unknown = changes.keys() - {{*{names!r}}}
        if unknown:
            raise TypeError(f"{name} has no field {{unknown}}")
        return {name}({replaced})
    def __eq__(self, other: object) -> bool:
        return isinstance(other, {name}) and {equal}
    def __hash__(self) -> int:
        {hashed}
    def __repr__(self) -> str:
        return f"{name}({shown})"
"""


def problems(source: str) -> list[str]:
    """What in a module would be something else as a native class, each with its line; empty when it
    can be compiled.
    """
    module = ast.parse(source)
    return [
        f"line {node.lineno}: {node.name} {problem}"
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        for problem in (
            _record_problems(node, node in module.body)
            if _is_record(node)
            else _class_problems(node)
        )
    ]


def native(source: str) -> str:
    """The same module with native classes in the place of its records, and with final constants.

    ValueError with all `problems` when there are some.
    """
    if found := problems(source):
        raise ValueError("; ".join(found))
    module = ast.parse(source)
    bound = Counter(
        node.id
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    bound.update(
        name for node in ast.walk(module) if isinstance(node, ast.Global) for name in node.names
    )
    body = [made for node in module.body for made in _written(node, bound)]
    first = sum(
        isinstance(node, ast.Expr)
        or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        for node in body[:2]
    )
    return ast.unparse(ast.Module([*body[:first], *ast.parse(HEADER).body, *body[first:]], []))


def _is_record(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) == BASE for base in node.bases)


def _class_problems(node: ast.ClassDef) -> Iterator[str]:
    if node.keywords:
        yield f"has the option {_options(node.keywords)}: compiled classes have none"
    if any(ast.unparse(base).split(".")[-1] == "Struct" for base in node.bases):
        yield f"is a record only if its base is called {BASE}"


def _record_problems(record: ast.ClassDef, of_module: bool) -> Iterator[str]:
    if not of_module:
        yield "is inside of something: a record must be a class of its module"
    if len(record.bases) > 1:
        yield f"has other bases than {BASE}"
    if record.decorator_list:
        yield "has a decorator"
    if odd := [one for one in record.keywords if one.arg not in OPTIONS]:
        yield f"has the option {_options(odd)}: records have {' and '.join(sorted(OPTIONS))}"
    documented = bool(ast.get_docstring(record))
    for statement in record.body[documented:]:
        yield from _statement_problems(statement)


def _statement_problems(statement: ast.stmt) -> Iterator[str]:
    text = ast.unparse(statement).partition("\n")[0]
    if isinstance(statement, ast.FunctionDef):
        if statement.name in WRITTEN:
            yield f"has {statement.name} of its own, which is written for it"
        elif statement.name == "__post_init__":
            yield "has __post_init__, which would not be called"
    elif not isinstance(statement, ast.AnnAssign):
        yield f"has something that is neither a field nor a method: {text}"
    elif "ClassVar" in ast.unparse(statement.annotation):
        yield f"has an attribute that is no field: {text}"
    elif isinstance(statement.value, ast.Call):
        yield f"has a default that is called for: {text}"


def _options(keywords: list[ast.keyword]) -> str:
    return ", ".join([one.arg or "**" for one in keywords])


def _written(node: ast.stmt, bound: Counter[str]) -> Iterator[ast.stmt]:
    """A statement of the module as the compiler gets it."""
    if isinstance(node, ast.ClassDef) and _is_record(node):
        yield _native(node)
        return
    pairs = _assigned(node)
    if pairs and all(
        bound[name] == 1 and len(name) > 1 and name in (name.lower(), name.upper())
        for name, _ in pairs
    ):
        yield from ast.parse("\n".join([f"{name}: Final = {value}" for name, value in pairs])).body
    else:
        yield node


def _assigned(node: ast.stmt) -> list[tuple[str, str]]:
    """The names of an assignment without types, with their values; empty for anything else.

    Also for a tuple that begins with a float: what mypyc 2.4 makes of it finds it unset.
    """
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or _begins_with_float(node.value):
        return []
    target, value = node.targets[0], node.value
    if (
        isinstance(target, ast.Tuple)
        and isinstance(value, ast.Tuple)
        and len(target.elts) == len(value.elts)
    ):
        return [
            (ast.unparse(one), ast.unparse(given))
            for one, given in zip(target.elts, value.elts, strict=True)
        ]
    return [(target.id, ast.unparse(value))] if isinstance(target, ast.Name) else []


def _begins_with_float(value: ast.expr) -> bool:
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else None
    return isinstance(first, ast.Constant) and isinstance(first.value, float)


def _native(record: ast.ClassDef) -> ast.stmt:
    options = {one.arg: ast.unparse(one.value) == "True" for one in record.keywords}
    fields = [one for one in record.body if isinstance(one, ast.AnnAssign)]
    names = [ast.unparse(one.target) for one in fields]
    hashed = f"return hash(({', '.join([f'self.{name}' for name in names])},))"
    text = CLASS.format(
        name=record.name,
        names=tuple(names),
        parameters=", ".join(map(_parameter, fields)),
        assignments="; ".join(map(_assignment, fields)),
        replaced=", ".join([f"changes.get({name!r}, self.{name})" for name in names]),
        equal=" and ".join([f"self.{name} == other.{name}" for name in names]),
        hashed=(
            hashed
            if options.get("frozen")
            else "raise TypeError('it may change, so it has no hash')"
        ),
        shown=", ".join([f"{name}={{self.{name}!r}}" for name in names]),
    )
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.ClassDef)
    kept = [one for one in record.body if one not in fields]
    documented = int(bool(ast.get_docstring(record)))
    made.body = [*kept[:documented], *made.body, *kept[documented:]]
    return made


def _parameter(field: ast.AnnAssign) -> str:
    if field.value is not None and _is_fresh(field.value):
        return f"{ast.unparse(field.target)}: {ast.unparse(field.annotation)} | None = None"
    return ast.unparse(field)


def _assignment(field: ast.AnnAssign) -> str:
    name = ast.unparse(field.target)
    if field.value is not None and _is_fresh(field.value):
        return (
            f"self.{name}: {ast.unparse(field.annotation)} = {ast.unparse(field.value)} if {name}"
            f" is None else {name}"
        )
    return f"self.{name} = {name}"


def _is_fresh(default: ast.expr) -> bool:
    """Whether each record has such a default of its own."""
    return isinstance(default, ast.Dict | ast.List | ast.Set)
