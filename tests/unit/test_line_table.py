"""The table of the line: small however long the line, the same for everybody, and no visitor sleeps
through a turn because of it.
"""

import json
from bisect import bisect_left
from dataclasses import replace
from math import sqrt
from pathlib import Path
from random import Random

import pytest
from admission_world import small_room, ticket_id
from config_service_in_memory import DeskInMemory
from visitors import Browser, Site, header

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.refresh import FIRST_REFRESH_MS
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.admission.queueing.line_table import ranks, thinned
from greenroom.admission.schedule import effective
from greenroom.config_file.load import read_config
from greenroom.configuration import events, rooms, zones
from greenroom.decision.observer import Decided
from greenroom.decision.room_schedule import compile_room
from greenroom.decision.shared_table import STALE_MS, SharedTable, body_of
from greenroom.decision.verdict import Forward
from greenroom.errors import InvalidConfig
from greenroom.model.answer import Answer
from greenroom.model.event import Event
from greenroom.model.line_table import CHECK_IN_S, FRESH_MS, KNOTS_MAX, Knot, LineTable
from greenroom.model.offer import Offer
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.visit import Outcome, Standing, make_key
from greenroom.pages.builtin import hash_of
from greenroom.web.refusals import Refused

START_MS = 1_750_000_000_000
HOUR_MS = 3_600_000
SHARED = small_room(line_table=True)
LINE = "greenroom=line"
READS = ((b"accept", b"application/json"), (b"greenroom-update", b"fifo+table"))
UPDATE = ((b"accept", b"application/json"), (b"greenroom-update", b"fifo"))


def read(knots: list[tuple[int, int]], arrival_ms: int) -> float:
    """As the page reads it."""
    after = bisect_left(knots, (arrival_ms, -1))
    if after == 0:
        return knots[0][1]
    (from_ms, low), (until_ms, high) = knots[after - 1], knots[after]
    return low + (arrival_ms - from_ms) / (until_ms - from_ms) * (high - low)


RUSHES = {
    "evenly": lambda part: part * HOUR_MS,
    "in a rush at the end": lambda part: sqrt(part) * HOUR_MS,
    "within a second": lambda part: part * 1_000,
    "in two waves": lambda part: part * 60_000 if part < 0.7 else 5 * HOUR_MS + part * HOUR_MS,
    "all at once": lambda _: 0.0,
}


@pytest.mark.parametrize("rush", RUSHES)
@pytest.mark.parametrize("waiting", [1, 2, 3, 40, 5_000, 1_000_000, 10_000_000])
def test_every_place_is_found_from_a_few_knots(rush: str, waiting: int) -> None:
    def arrival_of(rank: int) -> int:
        return START_MS + int(RUSHES[rush](rank / waiting))

    knots = thinned([(arrival_of(rank), rank) for rank in ranks(waiting)])
    assert (knots[0][1], knots[-1][1]) == (0, waiting - 1)
    assert len(knots) <= KNOTS_MAX
    if rush != "all at once":
        draw = Random(1)
        for rank in [min(waiting - 1, int(waiting ** draw.random())) for _ in range(200)]:
            same_ms = waiting / 1_000 if rush == "within a second" else waiting / 60_000 + 1
            behind_a_gap = 0.125 if rush == "in two waves" else 0.04
            assert abs(read(knots, arrival_of(rank)) - rank) <= 2 + behind_a_gap * rank + same_ms


def test_a_table_of_ten_million_is_two_kilobytes() -> None:
    draw = Random(3)
    knots = tuple(
        Knot(START_MS + place * HOUR_MS, 150_000 * place + draw.randrange(9), 86_400.0)
        for place in range(KNOTS_MAX)
    )
    assert (
        len(body_of(LineTable(START_MS, 10_000_000, True, 10_000_000, START_MS + HOUR_MS, knots)))
        < 2_300
    )


def line_of(
    many: int, room: Room = SHARED, now_ms: int = START_MS
) -> tuple[Ledger, dict[int, Outcome]]:
    """A ledger whose permits come by hand, with a line of so many who came a second apart."""
    ledger = Ledger(room, "here", 1, now_ms)
    told = {
        number: ledger.poll(ticket_id(number), make_key(now_ms + number * 1_000, 0), now_ms, number)
        for number in range(many)
    }
    return ledger, told


def test_the_table_tells_everyone_the_place_that_a_check_in_would() -> None:
    ledger, told = line_of(50)
    table = ledger.line_table(START_MS)
    knots = [(knot.arrival_ms, knot.ahead) for knot in table.knots]
    assert (table.waiting, table.open, table.made_ms) == (50, True, START_MS)
    ledger.leave(ticket_id(7), START_MS)
    for number, outcome in told.items():
        assert round(read(knots, START_MS + number * 1_000)) == number
        assert outcome.refresh_ms <= FIRST_REFRESH_MS * 1.1
    again = [
        ledger.poll(ticket_id(number), 0, START_MS + 1, number).refresh_ms
        for number in told
        if number != 7
    ]
    assert 50_000 < max(again) <= CHECK_IN_S * 1_100
    later = ledger.line_table(START_MS)
    assert [knot.ahead for knot in later.knots] == [0, 48]


def test_permits_that_come_at_once_wake_those_whose_turn_it_is_and_no_others() -> None:
    ledger, _ = line_of(200)
    assert ledger.line_table(START_MS).up_to_ms == START_MS  # the first one, always
    ledger.lease.permits = 30
    table = ledger.line_table(START_MS + 1_000)
    assert (table.due, table.up_to_ms) == (31, START_MS + 30_000)
    ledger.configure(replace(SHARED, queue_all=True), START_MS + 2_000)
    shut = ledger.line_table(START_MS + 2_000)
    assert (shut.open, shut.due, shut.up_to_ms, shut.waiting) == (False, 0, 0, 200)
    assert {knot.wait_s for knot in shut.knots} == {-1.0}
    ledger.configure(SHARED, START_MS + 3_000)
    ledger.halted = True
    assert ledger.line_table(START_MS + 3_000).due == 0


def test_those_who_leave_are_out_of_the_table_after_their_minute_and_the_called_after_seconds() -> (
    None
):
    ledger, _ = line_of(100)
    told = {number: ledger.poll(ticket_id(number), 0, START_MS, number) for number in range(100)}
    assert told[0].refresh_ms <= 2_500
    left_ms = START_MS + 2_500 + GRACE_MS + 512
    table = ledger.line_table(left_ms)
    assert table.waiting < 100
    assert table.knots[0].arrival_ms > START_MS
    assert ledger.line_table(START_MS + CHECK_IN_S * 1_100 + GRACE_MS + 512).knots == ()


def test_an_empty_line_has_an_empty_table() -> None:
    table = Ledger(SHARED, "here", 1, START_MS).line_table(START_MS)
    assert (table.waiting, table.knots, table.due) == (0, (), 0)
    assert json.loads(body_of(table))["greenroomLine"]["arrivedMs"] == []


class SlowLedger:
    """Answers when it is told to; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = []

    def line_table(self, then) -> None:
        self.asked.append(then)


TABLE = LineTable(START_MS, 0, True, 0, 0, ())


def test_the_ledger_is_asked_once_a_second_however_many_ask() -> None:
    ledger, answers = SlowLedger(), []
    shared = SharedTable(ledger)
    for _ in range(5):
        assert shared.answer(START_MS, answers.append) is None
    assert len(ledger.asked) == 1
    ledger.asked.pop()(TABLE)
    assert len(answers) == 5
    assert len({id(answer) for answer in answers}) == 1
    assert shared.answer(START_MS + FRESH_MS - 1, answers.append) is answers[0]
    assert not ledger.asked
    assert (
        shared.answer(START_MS + FRESH_MS, answers.append) is answers[0]
    )  # while a newer one is on its way
    assert len(ledger.asked) == 1


def test_without_an_answer_of_the_ledger_there_is_an_old_table_for_seconds_and_then_none() -> None:
    ledger, answers = SlowLedger(), []
    shared = SharedTable(ledger)
    shared.answer(START_MS, answers.append)
    ledger.asked.pop()(TABLE)
    old = shared.answer(START_MS + STALE_MS - 1, answers.append)
    ledger.asked.pop()(None)
    assert old is answers[0]
    assert shared.answer(START_MS + STALE_MS - 1, answers.append) is old
    later_ms = START_MS + STALE_MS + FRESH_MS
    assert shared.answer(later_ms, answers.append) is None
    ledger.asked.pop()(None)
    assert (answers[-1].status, header(answers[-1], b"Cache-Control")) == (503, b"no-store")


def test_a_ledger_that_raises_is_asked_again() -> None:
    class Broken:
        def line_table(self, _then) -> None:
            raise ConnectionResetError

    shared = SharedTable(Broken())
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            shared.answer(START_MS, lambda _: None)


def crowd(site: Site, many: int) -> list[Browser]:
    """So many in line, each with a ticket that has come back."""
    found = [Browser(site) for _ in range(many)]
    for one in found:
        one.visit()
        site.advance(300)
    site.advance(2_500)
    for one in found:
        one.visit(headers=UPDATE)
    return found


def table_of(answer: object) -> dict:
    assert isinstance(answer, Answer)
    assert answer.status == 200
    return json.loads(answer.body)["greenroomLine"]


def test_the_table_says_what_is_left_where_operators_do(tmp_path: Path) -> None:
    site = Site(tmp_path, SHARED)
    stalls = Offer(name="Stalls", price="45 EUR", available="0", as_of_ms=START_MS)
    circle = Offer(name="Circle", available="few", as_of_ms=START_MS)

    def table(offers: tuple[Offer, ...] | None) -> dict:
        schedule = compile_room(
            SHARED,
            (),
            site.clock.ms,
            site.ledgers[SHARED.id],
            always_use_https=False,
            draws=site.draws,
            on_error=site.errors.append,
            offers=offers,
        )
        return table_of(schedule.now.line_table.answer(site.clock.ms, lambda _: None))

    said = [table(offers)["offers"] for offers in ((stalls, circle), (stalls,), ())]
    assert [each["soldOut"] for each in said] == [False, True, False]
    assert said[0]["items"] == [
        {"name": "Stalls", "price": "45 EUR", "available": 0, "asOf": "2025-06-15T15:06:40.000Z"},
        {"name": "Circle", "price": "", "available": "few", "asOf": "2025-06-15T15:06:40.000Z"},
    ]
    assert "offers" not in table(None)


def test_everyone_gets_the_same_bytes_for_a_second_and_no_cookie(tmp_path: Path) -> None:
    site = Site(tmp_path, SHARED)
    waiting = crowd(site, 12)
    odd = (
        (b"cookie", b"__cfwaitingroom=x"),
        (b"x-forwarded-for", b"1.2.3.4"),
        (b"accept", b"text/html"),
        (b"greenroom-update", b"leave"),
    )
    answers = [
        one.visit(query=LINE, headers=headers)
        for one in (*waiting, Browser(site))
        for headers in ((), UPDATE, odd)
    ]
    answers.append(Browser(site).visit(path="/any/page", method="HEAD", query=LINE))
    assert len({answer.body for answer in answers}) == 1
    assert {answer.set_cookie for answer in answers} == {b""}
    assert header(answers[0], b"Cache-Control") == b"public, max-age=1"
    assert header(answers[0], b"Vary") == b""
    assert table_of(answers[0])["waiting"] == 7  # five are inside
    assert site.events_seen[-1].decided is Decided.LINE_TABLE
    assert not site.errors
    waiting[11].visit(method="POST", query="greenroom=leave")
    assert waiting[0].visit(query=LINE).body == answers[0].body
    site.advance(FRESH_MS)
    assert table_of(waiting[0].visit(query=LINE))["waiting"] < 7


@pytest.mark.parametrize(
    "query",
    [
        "greenroom=line&x=1",
        "x=1&greenroom=line",
        "greenroom=line&",
        "greenroom=Line",
        "greenroom%3Dline",
        "greenroom=line#",
        "",
    ],
)
def test_no_other_query_is_the_table_so_caches_keep_one_copy_and_nothing_of_a_visitor(
    tmp_path: Path, query: str
) -> None:
    site = Site(tmp_path, SHARED)
    crowd(site, 6)
    answer = Browser(site).visit(query=query)
    assert isinstance(answer, Answer)
    assert header(answer, b"Cache-Control") == b"private, no-store"
    assert answer.set_cookie


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_a_read_gets_the_table(tmp_path: Path, method: str) -> None:
    answer = Browser(Site(tmp_path, SHARED)).visit(method=method, query=LINE)
    assert isinstance(answer, Forward) or b"greenroomLine" not in answer.body


def test_where_there_is_no_table_the_request_is_like_any_other(tmp_path: Path) -> None:
    plain = Site(tmp_path / "plain", small_room())
    assert isinstance(Browser(plain).visit(query=LINE), Forward)
    assert isinstance(
        Browser(Site(tmp_path / "off", replace(SHARED, suspended=True))).visit(query=LINE), Forward
    )
    elsewhere = Site(tmp_path / "path", replace(SHARED, path="/sale"))
    assert isinstance(Browser(elsewhere).visit(path="/", query=LINE), Forward)
    assert elsewhere.events_seen[-1].decided is Decided.UNCOVERED
    assert isinstance(Browser(elsewhere).visit(path="/sale/now", query=LINE), Answer)


def test_a_rule_that_lets_some_visitors_by_does_not_put_their_page_in_place_of_the_table(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, SHARED, bypass=lambda _arrival, _now: object())  # type: ignore[arg-type,return-value]
    assert isinstance(Browser(site).visit(), Forward)
    assert isinstance(Browser(site).visit(query=LINE), Answer)


def test_pages_that_read_the_table_check_in_once_a_minute_and_others_as_ever(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, SHARED)
    waiting = crowd(site, 60)
    site.advance(5_000)
    last = waiting[-1]
    shown = last.visit()
    assert 17 <= int(header(shown, b"Refresh")) <= 23  # without a script
    site.advance(5_000)
    assert 17 <= json.loads(last.visit(headers=UPDATE).body)["greenroom"]["nextTrySeconds"] <= 23
    site.advance(5_000)
    told = json.loads(last.visit(headers=READS).body)["greenroom"]
    assert 53 <= told["nextTrySeconds"] <= 67
    assert told["position"] > 1
    site.advance(2_000)
    assert (
        json.loads(last.visit(headers=READS).body)["greenroom"]["nextTrySeconds"] > 50
    )  # counted, although it was not its time


def test_a_sleeper_whose_turn_has_come_is_let_in_before_its_time(tmp_path: Path) -> None:
    site = Site(tmp_path, SHARED)
    waiting = crowd(site, 40)
    sleeper = waiting[30]
    site.advance(3_000)
    told = json.loads(sleeper.visit(headers=READS).body)["greenroom"]
    assert told["nextTrySeconds"] > 30
    site.configure(
        replace(SHARED, total_active_users=500, new_users_per_minute=500, pace_admissions=False)
    )
    site.advance(6_000)
    table = table_of(Browser(site).visit(query=LINE))
    assert table["checkInUpToMs"] >= told["joinedMs"]
    assert table["spreadSeconds"] <= 2
    reply = sleeper.visit(headers=READS)
    assert isinstance(reply, Answer)
    assert b"greenroom" not in reply.body.replace(b"cfWaitingRoom", b"")  # let in
    assert site.events_seen[-1].outcome.standing is Standing.ADMITTED


# -- what is refused -------------------------------------------------------------------------------

EVENT = {
    "name": "sale",
    "event_start_ms": START_MS + HOUR_MS,
    "event_end_ms": START_MS + 2 * HOUR_MS,
}
DRAWING = (
    {"shuffle_at_event_start": True, "prequeue_start_ms": START_MS},
    {"queueing_method": "random"},
)


@pytest.mark.parametrize("method", ["random", "passthrough", "reject"])
def test_only_a_line_in_order_of_arrival_has_a_table(method: str) -> None:
    with pytest.raises(InvalidConfig, match=f"needs queueing_method fifo, not {method}"):
        small_room(line_table=True, queueing_method=method)


@pytest.mark.parametrize("drawing", DRAWING, ids=lambda fields: next(iter(fields)))
def test_while_an_event_draws_places_there_is_no_table(drawing: dict) -> None:
    event = Event(**EVENT, **drawing)
    now = effective(SHARED, [event], event.event_start_ms)
    assert not now.room.line_table
    assert effective(SHARED, [event], event.event_end_ms).room.line_table


CONFIG = """
origin = "http://127.0.0.1:3000"
[[rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 200
new_users_per_minute = 200
line_table = true
[[rooms.events]]
name = "sale"
event_start_time = "2026-05-01T10:00:00Z"
event_end_time = 2026-05-01T12:00:00Z
"""


@pytest.mark.parametrize(
    "more",
    [
        'prequeue_start_time = "2026-05-01T09:00:00Z"\nshuffle_at_event_start = true',
        'queueing_method = "random"',
    ],
)
def test_a_file_whose_event_draws_places_is_refused(more: str) -> None:
    with pytest.raises(InvalidConfig, match="must not draw places while the room has line_table"):
        read_config(CONFIG + more)
    assert read_config(CONFIG).rooms[0].line_table


def test_the_api_refuses_a_draw_beside_a_table_and_a_table_beside_a_draw() -> None:
    service = DeskInMemory()
    zone = service.do(zones.create({"name": "example.com"}, lambda _pointer, _url: []))["id"]
    fields = {
        "name": "shop",
        "host": "shop.example.com",
        "new_users_per_minute": 200,
        "total_active_users": 300,
    }
    room = service.do(rooms.create(zone, {**fields, "greenroom": {"line_table": True}}))["id"]
    sale = {
        "name": "sale",
        "event_start_time": "2030-01-01T11:00:00Z",
        "event_end_time": "2030-01-01T12:00:00Z",
    }
    with pytest.raises(Refused, match="must not draw places"):
        service.do(events.create(zone, room, {**sale, "queueing_method": "random"}))
    service.do(rooms.change(zone, room, {"greenroom": {"line_table": False}}, False))
    service.do(events.create(zone, room, {**sale, "queueing_method": "random"}))
    with pytest.raises(
        Refused, match="must be false while an event of the room draws places: sale"
    ) as refused:
        service.do(rooms.change(zone, room, {"greenroom": {"line_table": True}}, False))
    assert refused.value.faults[0].pointer == "/greenroom/line_table"


# -- the page --------------------------------------------------------------------------------------


def test_the_page_names_one_table_for_its_room_and_its_policy_allows_the_script(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, replace(SHARED, path="/a'b", follow_accept_language=True))
    page = crowd_page(site, "/a'b/x")
    body = page.body.decode()
    assert 'data-table="/a&#x27;b?greenroom=line"' in body
    script = body.partition("<script>")[2].partition("</script>")[0]
    assert f"'sha256-{hash_of(script)}'".encode() in header(page, b"Content-Security-Policy")
    assert "greenroomLine" in script
    several = replace(
        SHARED, host="a.example", additional_routes=(Route("b.example", "/"),), cookie_suffix="s"
    )
    assert (
        b'data-table="?greenroom=line"'
        in crowd_page(Site(tmp_path / "several", several), "/x", "b.example").body
    )


def crowd_page(site: Site, path: str, host: str = "shop.example") -> Answer:
    """What the sixth visitor sees."""
    for _ in range(6):
        answer = Browser(site, host).visit(path=path)
    assert isinstance(answer, Answer)
    return answer


def test_a_page_without_a_table_has_nothing_of_it(tmp_path: Path) -> None:
    page = crowd_page(Site(tmp_path, small_room()), "/")
    assert b"greenroomLine" not in page.body
    assert b"data-table" not in page.body
