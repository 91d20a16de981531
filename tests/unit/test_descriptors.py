"""File descriptors that run short: who has to make room, and who never has."""

import resource
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from greenroom.gateway.counts import Counts
from greenroom.gateway.visitor.descriptors import QUIET_S, Descriptors

LIMIT = 40
"""Ten of them are the reserve, so ten connections at most make room at once."""


@dataclass
class Transport:
    aborted: bool = False

    unsent: int = 0

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent


@dataclass
class Peer:
    trusted: bool = False


@dataclass(eq=False)
class Connection:
    deadline: float
    requests: int = 0
    spare: bool = True
    ending: bool = False
    body: object = None
    peer: Peer = field(default_factory=Peer)
    transport: Transport = field(default_factory=Transport)


def closed(connections: list[Connection]) -> list[float]:
    return sorted(one.deadline for one in connections if one.transport.aborted)


def spare(connections: list[Connection]) -> tuple[Any, int]:
    return [one for one in connections if one.spare], len(connections)


def crowd(number: int, **how: object) -> list[Connection]:
    """The oldest has the earliest deadline."""
    return [Connection(float(place), **how) for place in range(number)]  # type: ignore[arg-type]


def test_kept_alive_connections_make_room_first_the_longest_silent_before_the_others() -> None:
    kept = [Connection(100.0 + place, requests=1) for place in range(12)]
    silent = crowd(12)
    counts = Counts()
    assert Descriptors(counts, LIMIT).make_room(*spare([*silent, *kept]), 1.0)
    assert closed(silent) == []
    assert closed(kept) == [100.0 + place for place in range(10)]
    assert counts.connections_shed == 10


def test_then_those_whose_request_has_not_come_whole_the_oldest_first() -> None:
    silent = crowd(12)
    assert Descriptors(Counts(), LIMIT).make_room(*spare(list(reversed(silent))), 1.0)
    assert closed(silent) == list(map(float, range(10)))


@pytest.mark.parametrize(
    "late",
    [
        {"ending": True},
        {"body": b""},
        {"transport": Transport(unsent=1)},
        {"peer": Peer(trusted=True)},
    ],
)
def test_then_those_whose_answer_may_be_on_its_way_and_trusted_proxies(
    late: dict[str, Any],
) -> None:
    last = Connection(0.0, requests=1, **late)
    others = [*crowd(9), last]
    assert Descriptors(Counts(), LIMIT).shed(others, 9) == others[:9]
    assert Descriptors(Counts(), LIMIT).shed(others, 10)[9] is last


def test_a_request_that_is_under_way_is_never_closed_for_another() -> None:
    busy = crowd(30, spare=False)
    assert not Descriptors(Counts(), LIMIT).make_room(*spare(busy), 1.0)
    assert closed(busy) == []


def test_those_that_are_closing_are_known_until_they_are_gone() -> None:
    descriptors, connections = Descriptors(Counts(), LIMIT), crowd(30)
    descriptors.make_room(*spare(connections), 1.0)
    assert descriptors.closing
    for one in connections[:10]:
        descriptors.closed(one)
    assert not descriptors.closing
    assert descriptors.make_room(*spare(connections[10:]), 1.0)
    assert len(closed(connections)) == 20


def test_a_shortage_is_told_once_and_its_end_too() -> None:
    descriptors = Descriptors(Counts(), LIMIT)
    with capture_logs() as logs:
        for now in (1.0, 2.0, 3.0):
            for one in crowd(2):
                descriptors.make_room(*spare([one]), now)
                descriptors.closed(one)
            descriptors.sweep(now)
        descriptors.sweep(2.0 + QUIET_S)
        assert [log["event"] for log in logs] == ["descriptors_short"]
        descriptors.sweep(3.0 + QUIET_S)
        descriptors.sweep(4.0 + QUIET_S)
    assert [(log["event"], log["closed"]) for log in logs] == [
        ("descriptors_short", 1),
        ("file_descriptors_sufficient", 6),
    ]


@pytest.mark.parametrize(("open_now", "is_short"), [(29, False), (30, True)])
def test_what_the_gateway_holds_counts_whatever_number_a_connection_has(
    open_now: int, is_short: bool
) -> None:
    counts = Counts()
    counts.connections_open, counts.origin_connections_open = open_now - 10, 10
    assert Descriptors(counts, LIMIT).short(3) is is_short


def test_descriptors_that_others_hold_are_known_from_the_number_of_a_connection() -> None:
    with open("/dev/null") as file:  # some number that is in use
        held = file.fileno()
        counts = Counts()
        counts.connections_open = 1
        assert Descriptors(counts, held + 1).short(held), "as many are in use as there may be"
        assert not Descriptors(counts, 100 * held).short(held)


def test_the_reserve_is_a_quarter_where_few_are_allowed_and_bounded_where_many_are() -> None:
    assert Descriptors(Counts(), 96).line == 72
    assert Descriptors(Counts(), 1 << 20).line == (1 << 20) - 1_024
    assert Descriptors(Counts(), resource.RLIM_INFINITY).line > 1 << 20
