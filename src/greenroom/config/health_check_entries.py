"""Reads `[[health_checks]]`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenroom.config.records import unknown_keys
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.fields import NAME_WORDS, check_value, spec, specs
from greenroom.model.health_check import (
    CHECKS_MAX,
    HealthCheck,
    HttpCheck,
    TcpCheck,
    effective,
    health_check_problems,
)

ID_PATTERN = r"[A-Za-z0-9_-]+"
PARTS: Mapping[str, type] = {"http_config": HttpCheck, "tcp_config": TcpCheck}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckExtra:
    """Keys of a check in a file that are not its fields."""

    id: str = spec(
        "stable identifier that its history is kept under; default: made from the name",
        "",
        low=1,
        high=64,
        pattern=ID_PATTERN,
        pattern_words=NAME_WORDS,
    )


KEYS = tuple(dict.fromkeys([*specs(HealthCheck), *specs(HealthCheckExtra)]))


def health_check_id(name: str) -> str:
    """Depends on the name only, so the history survives restarts and reordering."""
    return hashlib.sha256(f"health check/{name}".encode()).hexdigest()[:32]


def read_health_checks(raw: Any, problems: list[Problem]) -> tuple[HealthCheck, ...]:
    """Adds what is wrong to `problems`."""
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        problems.append(
            Problem(
                "health_checks",
                "must be written as [[health_checks]] tables with a name and an address",
            )
        )
        return ()
    if len(raw) > CHECKS_MAX:
        problems.append(
            Problem("health_checks", f"must be at most {CHECKS_MAX} health checks, not {len(raw)}")
        )
        return ()
    checks: list[HealthCheck] = []
    names: dict[str, str] = {}
    for index, entry in enumerate(raw):
        at = step("health_checks", index)
        found, values = _values(entry, at)
        name = values.get("name")
        if isinstance(name, str) and names.setdefault(name, at) != at:
            found.append(
                Problem(
                    step(at, "name"),
                    f"{name!r}: there is already a health check of this name ({names[name]})",
                )
            )
        problems += found
        if not found:
            checks.append(HealthCheck(**{"id": health_check_id(values["name"]), **values}))
    taken: dict[str, str] = {}
    for check in checks:
        if taken.setdefault(check.id, check.name) != check.name:
            problems.append(
                Problem(
                    "health_checks",
                    f"{check.name} and {taken[check.id]} have the same id {check.id}",
                )
            )
    return tuple(checks)


def _values(raw: Mapping[str, Any], pointer: str) -> tuple[list[Problem], dict[str, Any]]:
    problems = unknown_keys(raw, KEYS, pointer)
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in raw.items()
        if key in KEYS
    }
    for key, rule in specs(HealthCheckExtra).items():
        wrong = check_value(step(pointer, key), raw[key], str, rule) if key in raw else None
        problems += [wrong] if wrong else []
    for key, record in PARTS.items():
        if key in values:
            part = _part(record, values.pop(key), step(pointer, key), problems)
            values |= {key: part} if part else {}
    values = effective(values)
    known = {problem.pointer for problem in problems}
    problems += [
        found
        for found in health_check_problems(values, f"{pointer}.")
        if found.pointer not in known
    ]
    return problems, values


def _part(record: type, raw: Any, pointer: str, problems: list[Problem]) -> Any:
    """`http_config` or `tcp_config`; None for no table, or an unknown key. The check checks the
    values.
    """
    if not isinstance(raw, dict):
        problems.append(Problem(pointer, f"must be a table, not {raw!r}"))
        return None
    found = unknown_keys(raw, list(specs(record)), pointer)
    problems += found
    return None if found else record(**{key: _held(value) for key, value in raw.items()})


def _held(value: Any) -> Any:
    """Lists as tuples, also inside a table."""
    if isinstance(value, dict):
        return {key: _held(inner) for key, inner in value.items()}
    return tuple(value) if isinstance(value, list) else value
