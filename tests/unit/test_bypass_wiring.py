"""A room's rules bound to the data path: no rule costs nothing, and one that breaks holds, is
counted and is told.
"""

from pathlib import Path

from visitors import Site

from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.rules import (
    NO_LISTS,
    NOTHING_KNOWN,
    NothingKnown,
    Place,
)
from greenroom.runtime.room_compiler import bypass

VISIT = Arrival("GET", "https", "shop.example", "/", "", (), "192.0.2.1")


class Broken(NothingKnown):
    def place(self, client: str) -> Place:
        raise OSError("the database went away")


def test_a_rule_that_breaks_lets_no_visitor_by_and_the_others_still_count() -> None:
    told: list[BaseException] = []
    broken, path = (
        Rule(expression='ip.src.country == "DE"'),
        Rule(expression='http.request.uri.path == "/open"'),
    )
    asks = bypass((broken, path), NO_LISTS, Broken(), told.append)
    assert asks is not None
    assert asks(VISIT, 0) is None
    assert [str(error) for error in told] == ["the database went away"]
    assert asks(Arrival("GET", "https", "shop.example", "/open", "", (), "192.0.2.1"), 0) is path


def test_a_negated_rule_that_breaks_does_not_let_by_either() -> None:
    asks = bypass(
        (Rule(expression='not ip.src.country == "DE"'),), NO_LISTS, Broken(), lambda _: None
    )
    assert asks is not None
    assert asks(VISIT, 0) is None


def test_a_room_whose_rules_are_all_switched_off_is_not_asked() -> None:
    assert bypass((), NO_LISTS, NOTHING_KNOWN, print) is None
    assert bypass((Rule(expression="true", enabled=False),), NO_LISTS, NOTHING_KNOWN, print) is None


def test_what_rules_read_of_the_connection_is_in_the_arrival() -> None:
    peer = Peer("192.0.2.1", False, ForwardedPolicy(), ("192.0.2.9", 443))
    head = read_head(b"GET /a?b HTTP/1.0\r\nHost: a\r\n\r\n", peer)
    assert isinstance(head, RequestHead)
    assert (head.arrival.target, head.arrival.version, head.arrival.server) == (
        b"/a?b",
        "HTTP/1.0",
        ("192.0.2.9", 443),
    )


def test_the_ray_of_every_request_is_another_one(tmp_path: Path) -> None:
    asked: list[Arrival] = []
    site = Site(tmp_path, bypass=lambda arrival, _: asked.append(arrival))
    for _ in range(200):
        site.decisions.receive(VISIT, lambda _: None)
    rays = {arrival.ray_id for arrival in asked}
    assert len(rays) == 200
    assert {len(ray) for ray in rays} == {16}
    assert len({ray[-1] for ray in rays}) == 16, "one digit is enough to let a sixteenth by"
