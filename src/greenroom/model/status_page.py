"""A public status page: its address, rooms and health checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import FormSpec, field_problems, spec, vars_of

PAGES_MAX = 100
"""Each is computed every ten seconds while it is viewed."""

NAMES_MAX = 200
LISTEN_PORT_MIN = 1024
"""Lower ports are the machine's services."""


@dataclass(frozen=True, kw_only=True)
class StatusPage:
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
        form=FormSpec("address", "Path"),
    )
    host: str = spec(
        "host name that the page is for, in lower case; empty: any",
        "",
        example="status.example.com",
        high=253,
        pattern=r"[a-z0-9._:-]*",
        pattern_words="be a host name in lower case without scheme and path",
        form=FormSpec("host", "Host name"),
    )
    title: str = spec(
        "heading of the page",
        "Status",
        low=1,
        high=200,
        one_line=True,
        form=FormSpec("title", "Title"),
    )
    zone: str = spec(
        "show only rooms and health checks of the zone of this name; empty: of all",
        "",
        high=253,
        form=FormSpec("shown", "Zone", "Limits both lists below to one zone."),
    )
    rooms: tuple[str, ...] = spec(
        "names of the rooms on the page, `*` for all",
        (),
        high=NAMES_MAX,
        example=["*"],
        form=FormSpec("shown", "Rooms"),
    )
    health_checks: tuple[str, ...] = spec(
        "names of the health checks on the page, `*` for all",
        (),
        high=NAMES_MAX,
        example=["*"],
        form=FormSpec("shown", "Health checks"),
    )

    listen: str = spec(
        "IP address and port where every process serves the page, and serves nothing else; empty:"
        " on `status_listen`",
        "",
        example="0.0.0.0:8082",
        high=60,
        form=FormSpec("address", "Listen on"),
    )

    @property
    def where(self) -> str:
        return f"{self.host}{self.path}"

    def __post_init__(self) -> None:
        problems = page_problems(vars_of(self))
        if problems:
            raise InvalidConfig(problems)


def listen_parts(text: str) -> tuple[str, int] | None:
    """IP address and port; None: another form."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and LISTEN_PORT_MIN <= int(port[:6]) <= 65_535):
        return None
    six = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if six else host)
    except ValueError:
        return None
    return (str(address), int(port)) if six == (address.version == 6) else None


def page_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = field_problems(StatusPage, values)
    listen = values.get("listen", "")
    if isinstance(listen, str) and listen and len(listen) <= 60 and listen_parts(listen) is None:
        problems.append(
            Problem(
                "listen",
                "must be an IP address and a port from 1024 to 65535, such as 0.0.0.0:8082 or"
                f" [::]:8082, not {listen!r}",
            )
        )
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
