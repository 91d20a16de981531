"""Reads `[[health_checks]]`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenroom.config.records import read_document
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.health.checks import HEALTH_CHECK
from greenroom.model.fields import NAME_WORDS, Unique, field_problems, spec, specs, wrong_fields
from greenroom.model.health_check import (
    CHECKS_MAX,
    HealthCheck,
    effective,
    health_check_problems,
)

ID_PATTERN = r"[A-Za-z0-9_-]+"


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
    names, ids = Unique("health check"), Unique("health check with the id")
    for index, entry in enumerate(raw):
        at = step("health_checks", index)
        found, values = _values(entry, at)
        wrong = wrong_fields(found, f"{at}.")
        if not wrong & {"name", "id"}:
            values = {"id": health_check_id(values["name"]), **values}
            found += names.problems(step(at, "name"), values["name"]) or ids.problems(
                step(at, "id"), values["id"]
            )
        problems += found
        if not found:
            checks.append(HealthCheck(**values))
    return tuple(checks)


def _values(raw: Mapping[str, Any], pointer: str) -> tuple[list[Problem], dict[str, Any]]:
    extra = {name: raw[name] for name in specs(HealthCheckExtra) if name in raw}
    values, found = read_document(
        HEALTH_CHECK,
        raw,
        pointer,
        lambda check: health_check_problems(effective(check)),
        tuple(specs(HealthCheckExtra)),
    )
    return field_problems(HealthCheckExtra, extra, f"{pointer}.") + found, effective(values) | extra
