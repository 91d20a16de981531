"""A public status page: where it is, and which rooms and health checks are on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import field_problems, spec, vars_of

PAGES_MAX = 100
"""Each is computed every ten seconds while it is viewed."""

NAMES_MAX = 200


@dataclass(frozen=True, kw_only=True)
class StatusPage:
    """Raises InvalidConfig with every problem."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    path: str = spec(
        "path of the page on the status listener",
        "/",
        pattern=r"/([A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*)?",
        pattern_words=(
            "be / or a path such as /shop without / at the end, of letters (a to z, A to Z), digits"
            " and _ . ~ -"
        ),
        low=1,
        high=200,
    )
    host: str = spec(
        "host name that the page is for, in lower case; empty: any",
        "",
        example="status.example.com",
        high=253,
        pattern=r"[a-z0-9._:-]*",
        pattern_words="be a host name in lower case without scheme and path",
    )
    title: str = spec("heading of the page", "Status", low=1, high=200, one_line=True)
    zone: str = spec(
        "show only rooms and health checks of the zone of this name; empty: of all", "", high=253
    )
    rooms: tuple[str, ...] = spec(
        "names of the rooms on the page, `*` for all", (), high=NAMES_MAX, example=["*"]
    )
    health_checks: tuple[str, ...] = spec(
        "names of the health checks on the page, `*` for all", (), high=NAMES_MAX, example=["*"]
    )

    @property
    def where(self) -> str:
        return f"{self.host}{self.path}"

    def __post_init__(self) -> None:
        problems = page_problems(vars_of(self))
        if problems:
            raise InvalidConfig(problems)


def page_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = field_problems(StatusPage, values)
    return problems + [
        one
        for name in ("rooms", "health_checks")
        for one in _name_problems(name, values.get(name, ()))
    ]


def _name_problems(pointer: str, names: Any) -> list[Problem]:
    listed = names if isinstance(names, tuple) else ()
    return [
        Problem(
            f"{pointer}[{index}]",
            "must be a string of 1 to 200 characters",
        )
        for index, name in enumerate(listed)
        if isinstance(name, str) and not 1 <= len(name) <= 200
    ]
