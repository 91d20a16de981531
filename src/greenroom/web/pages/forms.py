"""Forms from the model's metadata."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from greenroom.model.configuration import KINDS, Configuration
from greenroom.model.fields import Spec, specs, written
from greenroom.model.route import as_host
from greenroom.web.api_schema import EXTENSION, ApiField, ApiSchema
from greenroom.web.api_shapes import Json, Plain
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.refusals import ApiFault, Code, Refused

_SNAKE = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_WHOLE = re.compile(r"-?[0-9]{1,15}")


_FOR_PEOPLE: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"must have only letters .*digits, - and _, not '(.*)'",
        lambda it: (
            "Use letters, numbers, hyphens and underscores."
            + (f" How about {slug}?" if (slug := _slug(it[1])) else "")
        ),
    ),
    (r"must be a domain name in lower case .*", "Enter just the domain, like example.com."),
    (
        r"(greenroom\.origin: )?must be http://host\[:port\] .*",
        "Start the address with http:// or https://.",
    ),
    (
        r"must be at most (\d+ minutes), not .* \(greenroom\.session_ceiling of the zone\)",
        r"This zone allows sessions of up to \1.",
    ),
    (
        r"must be at least (\d+), not .* \(greenroom\.limit_floor of the zone\)",
        r"This zone allows limits of \1 or more.",
    ),
    (r"must be at most “([^”]+)”, ([\d,]+)", r"Can't be higher than \1 (\2)."),
    (r"must be given together with .*", "Set both limits, or leave both blank."),
    (r"port \d+ is not allowed; allowed: (.*)", lambda it: f"Use port {_listed(it[1])}."),
    (
        r"this ([a-z ]+) comes from the configuration file and can only be changed there",
        r"This \1 is managed in your configuration file: change it there.",
    ),
)
"""API messages and what a form says instead."""


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")


def slug_of(text: str) -> str:
    """A name for the API from one for people; empty: it has no letter or digit of ASCII."""
    return _slug(unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()).lower()


def _listed(ports: str) -> str:
    first, _, last = ports.rpartition(", ")
    return f"{first} or {last}" if first else last


def for_people(message: str) -> str:
    """As a form says it: what to do, and no pattern."""
    for rule, words in _FOR_PEOPLE:
        found = re.fullmatch(rule, message, re.DOTALL)
        if found:
            return found.expand(words) if isinstance(words, str) else words(found)
    return message


@dataclass(frozen=True, kw_only=True)
class FieldView:
    """`kind`: text, number, checkbox, select, textarea."""

    name: str
    label: str
    kind: str
    value: Any
    help: str = ""
    unit: str = ""
    low: int | None = None
    high: int | None = None
    choices: tuple[tuple[str, str], ...] = ()
    required: bool = False
    placeholder: str = ""
    problems: tuple[str, ...] = ()


class Faults:
    """Faults of no shown field are `general`. `labels`: names of fields for people."""

    def __init__(
        self, faults: Iterable[ApiFault] = (), labels: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.of: dict[str, list[str]] = {}
        for fault in faults:
            name = field_of(fault.pointer)
            message = fault.message.removeprefix(f"{name}: ")
            message = _SNAKE.sub(
                lambda found: f"“{labels[found[0]]}”" if found[0] in labels else found[0], message
            )
            said = _SNAKE.sub(lambda found: _without_key(found[0]), for_people(message))
            self.of.setdefault(name, []).append(said)

    def take(self, name: str) -> tuple[str, ...]:
        return tuple(self.of.pop(name, ()))

    @property
    def general(self) -> list[str]:
        """Read it when every field has been made."""
        return [
            f"{name[:1].upper()}{name[1:].replace('_', ' ')}: {text}" if name else text
            for name, texts in self.of.items()
            for text in texts
        ]


@cache
def _keys() -> frozenset[str]:
    known = {name for kind in KINDS.values() for name in specs(kind.record)}
    return frozenset(name for name in known | set(_TIME_KEYS) if "_" in name)


_TIME_KEYS = ("prequeue_start_time", "event_start_time", "event_end_time")


def _without_key(word: str) -> str:
    return f"“{word.replace('_', ' ')}”" if word in _keys() else word


def several(text: str) -> list[str]:
    """What people separate by commas, semicolons, blanks or lines."""
    return [one for one in re.split(r"[,;\s]+", text) if one]


def places(text: str) -> list[str]:
    """As `several`, but a path may have a comma inside."""
    return [one.strip(",;") for one in text.split() if one.strip(",;")]


def host_and_path(text: str) -> tuple[str, str]:
    """Of a host, a host with a path, or a pasted URL; the path is empty where there is none."""
    _, found, rest = text.strip().partition("://")
    rest = rest if found else text.strip()
    host, slash, path = re.split(r"[?#]", rest)[0].partition("/")
    host = host.rpartition("@")[2] if found else host
    return as_host(host), slash + path


def field_of(pointer: str) -> str:
    """`/greenroom/limit_floor` is limit_floor, `/host/2` host."""
    parts = [part for part in pointer.split("/") if part]
    return parts[1] if len(parts) > 1 and parts[0] == EXTENSION else parts[0] if parts else ""


def field_view(
    schema: ApiSchema,
    name: str,
    value: Any,
    faults: Faults,
    *,
    label: str = "",
    words: Mapping[str, str] | None = None,
) -> FieldView:
    """`label` and `words` (labels of choices) replace those of the description."""
    api_field = schema_field(schema, name)
    rule = api_field.rule
    labels = words or rule.choice_labels()
    return FieldView(
        name=name,
        label=label or (rule.form.label if rule.form else name.replace("_", " ").capitalize()),
        kind=_kind(api_field),
        value=written(value) if rule.choices else value,
        help=help_of(rule),
        unit=rule.unit,
        low=rule.low if _plain(api_field) is int else None,
        high=rule.high,
        choices=tuple((one, labels.get(one, one)) for one in map(written, rule.choices)),
        required=api_field.required,
        placeholder=str(rule.example or ""),
        problems=faults.take(name),
    )


def help_of(rule: Spec) -> str:
    if rule.form and rule.form.help:
        return rule.form.help
    return f"{rule.help[:1].upper()}{rule.help[1:]}.".replace("`", "")


def schema_field(schema: ApiSchema, name: str) -> ApiField:
    found = next((one for one in schema.fields if one.name == name), None)
    if found is None:
        raise KeyError(name)
    return found


def _plain(api_field: ApiField) -> type | None:
    return api_field.shape.kind if isinstance(api_field.shape, Plain) else None


def _kind(api_field: ApiField) -> str:
    if api_field.rule.choices:
        return "select"
    return {bool: "checkbox", int: "number"}.get(_plain(api_field) or str, "text")


def document_of(schema: ApiSchema, names: Iterable[str], form: Mapping[str, Any]) -> Json:
    """Text that is no number stays text: the schema reports it."""
    document: Json = {}
    for name in names:
        api_field = schema_field(schema, name)
        sent = form.get(name) or [""]
        where = document.setdefault(EXTENSION, {}) if api_field.rule.extension else document
        text = sent[-1]
        chosen = [choice for choice in api_field.rule.choices if written(choice) == text]
        where[name] = (
            chosen[0] if chosen else read_value(_plain(api_field), text, present=name in form)
        )
    return document


def read_value(kind: type | None, text: str, *, present: bool) -> Any:
    if kind is bool:
        return present and text not in ("", "false", "off")
    text = text.strip() if kind is not str or "\n" not in text else text
    return int(text) if kind is int and _WHOLE.fullmatch(text) else text


def flat(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{key: value for key, value in document.items() if key != EXTENSION},
        **document.get(EXTENSION, {}),
    }


def unchanged_since(kind: str, id: str, revision: str, plan: ConfigChange) -> ConfigChange:
    """`revision`: as the form carries it."""

    def careful(known: Configuration, at: ChangeContext) -> PlannedChange:
        entry = known.index_of(kind).get(id)
        if entry is not None and str(entry.revision) != revision:
            raise Refused(
                ApiFault(
                    Code.CHANGED_MEANWHILE,
                    "it was changed by another person while you were editing",
                )
            )
        return plan(known, at)

    return careful


@dataclass(frozen=True)
class Difference:
    label: str
    before: Any
    after: Any

    @property
    def changed(self) -> bool:
        return bool(self.before != self.after)


def differences(
    labels: Mapping[str, str], before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> list[Difference]:
    return [
        Difference(label, (before or {}).get(name), after.get(name))
        for name, label in labels.items()
        if name in after
    ]
