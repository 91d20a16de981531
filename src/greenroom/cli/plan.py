"""`greenroom plan`: limits, machines and memory for a sale, by arithmetic."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from greenroom.cli.show import say
from greenroom.model.fields import plural, with_unit

REQUEST_S = 50e-6
"""CPU of one request through the gateway, rounded up (docs/explanation/speed.md)."""
BUSY = 0.5
"""Of a core: a request costs up to twice as much where the processor is not busy."""
PROCESS_BYTES, WAITING_BYTES, ACTIVE_BYTES = 100_000_000, 300, 150
LARGE_LINE = 20_000
POLL_S = 20
"""Between two updates of a waiting page."""


@dataclass(frozen=True, slots=True)
class SalePlan:
    """Visitors come evenly during `minutes`; those inside load a page every `page_seconds`."""

    visitors: int
    minutes: float
    pages_per_second: float
    page_seconds: float
    visit_minutes: float
    session_minutes: int
    requests_per_page: int

    @property
    def browsing(self) -> float:
        """Visitors whom the application can serve at a time (Little's law)."""
        return self.pages_per_second * self.page_seconds

    @property
    def per_minute(self) -> int:
        return max(1, math.floor(self.browsing / self.visit_minutes))

    @property
    def active(self) -> int:
        """With those who have gone and whose session is still open."""
        return max(1, math.floor(self.browsing * self.stay_minutes / self.visit_minutes))

    @property
    def stay_minutes(self) -> float:
        return self.visit_minutes + self.session_minutes

    @property
    def longest_line(self) -> int:
        inside = self.per_minute * self.minutes
        return max(0, math.ceil(self.visitors - inside))

    @property
    def longest_wait_minutes(self) -> float:
        return self.longest_line / self.per_minute

    @property
    def requests_per_second(self) -> float:
        arriving = self.visitors / (self.minutes * 60)
        inside = min(self.pages_per_second, self.browsing / self.page_seconds)
        return self.longest_line / POLL_S + inside * self.requests_per_page + arriving

    @property
    def cores(self) -> int:
        return max(1, math.ceil(self.requests_per_second * REQUEST_S / BUSY))

    @property
    def visitor_bytes(self) -> int:
        return self.longest_line * WAITING_BYTES + self.active * ACTIVE_BYTES


def _positive(text: str) -> Any:
    return typer.Option(min=0.01, max=1e6, help=text)


def plan(
    visitors: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="How many come.", show_default=False)
    ],
    pages_per_second: Annotated[
        float,
        _positive("Pages that the application makes without becoming slow, from a load test."),
    ],
    minutes: Annotated[float, _positive("Within how many minutes they come.")] = 10,
    page_seconds: Annotated[float, _positive("Seconds that a visitor looks at a page.")] = 20,
    visit_minutes: Annotated[float, _positive("Minutes that a visitor stays inside.")] = 5,
    session_duration: Annotated[
        int, typer.Option(min=1, max=1440, help="`session_duration` of the room, in minutes.")
    ] = 5,
    requests_per_page: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="Requests of a page through greenroom: what no CDN serves."
        ),
    ] = 10,
) -> None:
    """Calculate limits, the longest line, cores and memory for a sale."""
    found = SalePlan(
        visitors,
        minutes,
        pages_per_second,
        page_seconds,
        visit_minutes,
        session_duration,
        requests_per_page,
    )
    for line in described(found):
        say(line)


def described(found: SalePlan) -> list[str]:
    line = found.longest_line
    shared = found.cores > 1
    memory = math.ceil((found.visitor_bytes * (not shared) + PROCESS_BYTES) / 1e6)
    rows = [
        ("total_active_users", f"{found.active}"),
        ("new_users_per_minute", f"{found.per_minute}"),
        ("session_duration", f"{found.session_minutes}"),
        ("longest line", f"{line} {plural(line, 'visitor')}"),
        ("longest wait", with_unit(round(found.longest_wait_minutes), "minutes")),
        ("requests", f"{found.requests_per_second:.0f} a second"),
        ("cores", f"{found.cores}" + (", as processes that share a Redis" if shared else "")),
        ("memory of a process", f"{memory} MB"),
    ]
    if shared:
        rows.append(("memory of Redis", f"{math.ceil(found.visitor_bytes / 1e6)} MB"))
    if line > LARGE_LINE:
        rows.append(("line_table", "true: a CDN then serves most requests of the line"))
    if found.longest_wait_minutes > found.minutes * 10:
        rows.append(("note", "most visitors wait long: consider a draw, or say what is left"))
    return [f"{name:<22}{value}" for name, value in rows]
