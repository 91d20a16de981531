"""Events at the edge: stages begin on the millisecond, an edit counts at once, and a draw that
cannot be kept holds the sale.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from admission_world import START_MS, FlakyJournal, bits, small_room
from visitors import NAVIGATES, Browser, Site, header

from greenroom.admission.schedule import Phase
from greenroom.cli import verify_draw
from greenroom.decision.moving_place import CODE_MS, LONGEST_CODE_MS, successor
from greenroom.decision.moving_place import code_of as sealed_code
from greenroom.decision.tickets import marked
from greenroom.decision.verdict import Forward
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.answer import Answer
from greenroom.model.event import Event
from greenroom.model.visit import make_key

MINUTE = 60_000
JSON = ((b"accept", b"application/json"),)


def sale(**changes: object) -> Event:
    times = {
        "prequeue_start_ms": START_MS + MINUTE,
        "event_start_ms": START_MS + 10 * MINUTE,
        "event_end_ms": START_MS + 20 * MINUTE,
    }
    return Event(**{"id": "e", "name": "sale", **times, **changes})  # type: ignore[arg-type]


def shop(folder: Path, *events: Event, **settings: object) -> Site:
    return Site(folder, small_room(json_response_enabled=True, **settings), events=events)


def told(browser: Browser) -> dict:
    reply = browser.visit("/", headers=JSON)
    assert isinstance(reply, Answer)
    return json.loads(reply.body)


def line_up(site: Site, count: int) -> list[Browser]:
    """Visitors a second apart, each with a place."""
    crowd = []
    for _ in range(count):
        crowd.append(Browser(site))
        assert isinstance(crowd[-1].visit("/"), Answer)
        site.advance(1_000)
    site.advance(3_000)
    for browser in crowd:
        browser.visit("/")
    return crowd


def keep_coming(site: Site, crowd: list[Browser], until_ms: int) -> list[Browser]:
    """Everybody tries when told until then; those who got in, in that order."""
    due = [(site.clock.ms + 1_000 * (number % 20), number) for number in range(len(crowd))]
    entered = []
    while due and min(due)[0] <= until_ms:
        at_ms, number = min(due)
        due.remove((at_ms, number))
        site.advance(max(0, at_ms - site.clock.ms))
        if isinstance(crowd[number].visit("/"), Forward):
            entered.append(crowd[number])
        elif crowd[number].retry_s:
            due.append((site.clock.ms + crowd[number].retry_s * 1000, number))
    site.advance(until_ms - site.clock.ms)
    return entered


def test_a_stage_begins_on_the_millisecond_for_the_one_who_asks_first(tmp_path: Path) -> None:
    site = shop(tmp_path, sale(prequeue_start_ms=None, queueing_method="reject"))
    site.clock.ms = START_MS + 10 * MINUTE - 1
    assert isinstance(Browser(site).visit("/"), Forward)
    site.clock.ms += 1
    assert isinstance(Browser(site).visit("/"), Answer)
    site.clock.ms = START_MS + 20 * MINUTE - 1
    assert isinstance(Browser(site).visit("/"), Answer)
    site.clock.ms += 1
    assert isinstance(Browser(site).visit("/"), Forward)


def test_without_a_shuffle_the_pre_queue_enters_in_order_of_arrival(tmp_path: Path) -> None:
    site = shop(tmp_path, sale())
    site.advance(MINUTE)
    crowd = line_up(site, 12)
    assert (
        ""
        == told(crowd[0])["greenroom"]["receipt"]
        == told(crowd[0])["greenroom"]["drawCommitment"]
    )
    keep_coming(site, crowd, START_MS + 10 * MINUTE - 1)
    assert [told(browser)["greenroom"]["position"] for browser in crowd] == list(range(1, 13))
    entered = keep_coming(site, crowd, START_MS + 14 * MINUTE)
    order = [crowd.index(browser) for browser in entered]
    assert len(order) == 12
    assert (
        max(abs(index - place) for place, index in enumerate(order)) <= 5
    )  # the room takes five at once
    assert not (tmp_path / "draws").exists()


def test_a_shuffle_orders_a_random_room_too_and_the_draw_stays_checkable(tmp_path: Path) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True, queueing_method="random"))
    site.advance(MINUTE)
    crowd = line_up(site, 12)
    before = [told(browser)["greenroom"] for browser in crowd]
    keep_coming(site, crowd, START_MS + 10 * MINUTE)
    draw = verify_draw.read_draw(next((tmp_path / "draws").glob("*.json")))
    assert list(verify_draw.problems(draw, before[0]["drawCommitment"])) == []
    assert len(keep_coming(site, crowd, START_MS + 14 * MINUTE)) == 12


def test_a_visitor_who_was_away_at_the_start_stands_right_behind_the_drawn_and_before_later_comers(
    tmp_path: Path,
) -> None:
    site = shop(
        tmp_path, sale(shuffle_at_event_start=True), total_active_users=1, new_users_per_minute=1
    )
    site.advance(6 * MINUTE)
    crowd = line_up(site, 8)
    away, present = crowd[0], crowd[1:]
    keep_coming(site, present, START_MS + 10 * MINUTE + 1_000)
    assert told(away)["greenroom"]["receipt"] == ""
    late = Browser(site)
    late.visit("/")
    site.advance(3_000)
    late.visit("/")
    away.visit("/")
    keep_coming(site, [*present, away, late], START_MS + 10 * MINUTE + 30_000)
    places = [
        told(browser)["greenroom"]
        for browser in (*present, away, late)
        if isinstance(browser.visit("/", headers=JSON), Answer)
    ]
    positions = [place["position"] for place in places]
    assert positions[-2:] == sorted(positions)[-2:]
    assert [place["drawnPlace"] for place in places[-2:]] == [0, 0]


def test_a_drawn_place_is_kept_for_a_visitor_whose_tab_slept_at_the_start(tmp_path: Path) -> None:
    site = shop(
        tmp_path, sale(shuffle_at_event_start=True), total_active_users=1, new_users_per_minute=1
    )
    site.advance(8 * MINUTE)
    crowd = line_up(site, 10)
    keep_coming(site, crowd, START_MS + 10 * MINUTE + 1)
    draw = verify_draw.read_draw(next((tmp_path / "draws").glob("*.json")))
    last = max(
        crowd, key=lambda browser: verify_draw.place(draw, told(browser)["greenroom"]["receipt"])
    )
    others = [browser for browser in crowd if browser is not last]
    first = max(
        others, key=lambda browser: -verify_draw.place(draw, told(browser)["greenroom"]["receipt"])
    )
    rest = [browser for browser in crowd if browser not in (first, last)]
    keep_coming(site, rest, START_MS + 12 * MINUTE)  # those two have slept for two minutes: ghosts
    assert isinstance(first.visit("/"), Forward) or told(first)["greenroom"]["position"] == 1
    last.visit("/")
    assert told(last)["greenroom"]["position"] == told(last)["greenroom"]["peopleWaiting"]
    assert told(last)["greenroom"]["drawnPlace"] == 10


def test_queue_all_beats_an_event_and_a_draw_is_held_all_the_same(tmp_path: Path) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True), queue_all=True)
    site.advance(MINUTE)
    crowd = line_up(site, 4)
    state = told(crowd[0])["cfWaitingRoom"]
    assert (state["queueAll"], state["isEventPrequeueing"], state["waitTimeKnown"]) == (
        True,
        True,
        False,
    )
    keep_coming(site, crowd, START_MS + 15 * MINUTE)
    assert told(crowd[0])["cfWaitingRoom"]["queueAll"]
    assert sorted(told(browser)["greenroom"]["drawnPlace"] for browser in crowd) == [1, 2, 3, 4]


def test_events_do_nothing_while_they_or_their_room_are_suspended(tmp_path: Path) -> None:
    site = shop(tmp_path / "one", sale(suspended=True, queueing_method="reject"))
    other = shop(tmp_path / "two", sale(queueing_method="reject"), suspended=True)
    for place in (site, other):
        place.clock.ms = START_MS + 15 * MINUTE
        assert isinstance(Browser(place).visit("/"), Forward)
        assert place.stage.effective.phase is Phase.IDLE


@pytest.mark.parametrize("edit", ["deleted", "suspended", "moved", "ended"])
def test_what_is_done_to_a_running_event_counts_at_once(tmp_path: Path, edit: str) -> None:
    closed = sale(prequeue_start_ms=None, queueing_method="reject")
    site = shop(tmp_path, closed)
    site.clock.ms = START_MS + 15 * MINUTE
    assert isinstance(Browser(site).visit("/"), Answer)
    changes = {
        "suspended": {"suspended": True},
        "moved": {"event_start_ms": START_MS + 18 * MINUTE},
        "ended": {"event_end_ms": site.clock.ms},
    }
    left = (
        []
        if edit == "deleted"
        else [sale(prequeue_start_ms=None, queueing_method="reject", **changes[edit])]
    )
    site.configure(*site.rooms, events=left)
    assert isinstance(Browser(site).visit("/"), Forward)


def test_what_an_event_leaves_open_follows_the_room_while_it_runs(tmp_path: Path) -> None:
    site = shop(tmp_path, sale(prequeue_start_ms=None, disable_session_renewal=True))
    site.clock.ms = START_MS + 15 * MINUTE
    assert (site.stage.room.queueing_method, site.stage.room.disable_session_renewal) == (
        "fifo",
        True,
    )
    site.configure(small_room(queueing_method="reject"))
    assert (site.stage.room.queueing_method, site.stage.room.disable_session_renewal) == (
        "reject",
        True,
    )
    assert isinstance(Browser(site).visit("/"), Answer)


def test_limits_of_an_event_count_from_its_start_to_its_end(tmp_path: Path) -> None:
    site = shop(
        tmp_path,
        sale(prequeue_start_ms=None, total_active_users=2, new_users_per_minute=60),
        session_duration=30,
    )
    site.clock.ms = START_MS + 10 * MINUTE
    assert [isinstance(Browser(site).visit("/"), Forward) for _ in range(3)] == [True, True, False]
    site.clock.ms = START_MS + 20 * MINUTE
    site.advance(5_000)
    assert [isinstance(Browser(site).visit("/"), Forward) for _ in range(4)] == [
        True,
        True,
        True,
        False,
    ]


def test_a_queue_left_at_the_end_keeps_its_order_under_the_rooms_own_method(tmp_path: Path) -> None:
    site = shop(
        tmp_path,
        sale(shuffle_at_event_start=True, total_active_users=1, new_users_per_minute=1),
        session_duration=30,
    )
    site.advance(8 * MINUTE)
    crowd = line_up(site, 6)
    entered = keep_coming(site, crowd, START_MS + 20 * MINUTE - 1)
    waiting = [browser for browser in crowd if browser not in entered]
    before = {id(browser): told(browser)["greenroom"]["position"] for browser in waiting}
    site.clock.ms += 1
    state = told(waiting[0])
    assert (
        state["cfWaitingRoom"]["isEventActive"],
        state["cfWaitingRoom"]["timeUntilEventEnd"],
    ) == (False, 0)
    assert {id(browser): told(browser)["greenroom"]["position"] for browser in waiting} == before


def test_a_full_disk_at_the_start_means_a_late_sale_and_never_one_in_the_wrong_order(
    tmp_path: Path,
) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True))
    site.advance(8 * MINUTE)
    crowd = line_up(site, 6)
    (tmp_path / "draws").write_text("a file where the folder should be")
    entered = keep_coming(site, crowd, START_MS + 11 * MINUTE)
    assert entered == []
    assert site.errors
    assert told(crowd[0])["cfWaitingRoom"]["isEventPrequeueing"]
    (tmp_path / "draws").unlink()
    keep_coming(site, crowd, START_MS + 12 * MINUTE)
    assert site.stage.effective.phase is Phase.RUNNING
    assert len(list((tmp_path / "draws").glob("*.json"))) == 1


class LateLedger:
    """The memory ledger, but a question about the line is answered when the test says so, as over a
    network.
    """

    def __init__(self, ledger: MemoryLedger) -> None:
        self.asked: list[Callable[[], None]] = []
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        self.asked.append(lambda: self._ledger.before(key, then))


def test_until_a_distant_ledger_has_answered_the_pre_queue_goes_on_and_it_is_asked_once(
    tmp_path: Path,
) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True))
    late = site.ledgers["r"] = LateLedger(site.ledgers["r"])  # type: ignore[assignment]
    site.settle()
    site.advance(8 * MINUTE)
    crowd = line_up(site, 4)
    assert keep_coming(site, crowd, START_MS + 11 * MINUTE) == []
    assert len(late.asked) == 1
    assert site.stage.effective.phase is Phase.PREQUEUE
    late.asked[0]()
    late.asked[1]()  # who came meanwhile
    assert site.stage.effective.phase is Phase.RUNNING
    assert len(keep_coming(site, crowd, START_MS + 12 * MINUTE)) == 4


class LateDraws(DrawFiles):
    """Other machines have to agree first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Random(1).randbytes)
        self.asked: list[Callable[[], None]] = []

    def settle(self, *arguments: Any) -> None:
        self.asked.append(lambda: DrawFiles.settle(self, *arguments))


def test_who_comes_into_line_while_the_draw_is_agreed_on_is_behind_the_drawn(
    tmp_path: Path,
) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True))
    draws = site.draws = LateDraws(tmp_path)
    site.settle()
    site.advance(6 * MINUTE)
    away, *present = line_up(site, 8)
    assert keep_coming(site, present, START_MS + 10 * MINUTE + 1_000) == []
    away.visit("/")
    draws.asked[0]()
    assert site.stage.effective.phase is Phase.RUNNING
    line = site.ledgers["r"].ledger.line
    keys = [key for _, key in line.in_order()]
    assert len(keys) == 8
    assert [key >= make_key(START_MS + 10 * MINUTE, 0) for key in keys] == [False] * 7 + [True]


def test_a_drawn_place_moves_to_another_device_and_before_the_draw_the_new_one_takes_part(
    tmp_path: Path,
) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True), queue_all=True)
    site.advance(8 * MINUTE)
    crowd = line_up(site, 8)
    early = code_of(crowd[0])
    crowd[1] = pressed(crowd[1], code_of(crowd[1]))
    crowd[1].visit("/")
    keep_coming(site, crowd, START_MS + 10 * MINUTE - 15_000)
    for refused in (early, code_of(crowd[2])):
        assert b"Please wait a moment" in body(press(Browser(site), refused)), (
            "it could take until the draw"
        )
    keep_coming(site, crowd, START_MS + 10 * MINUTE + 1)
    line = site.ledgers["r"].ledger.line
    order = [key for _, key in line.in_order()]
    assert len(order) == 8
    assert order[-1] < make_key(START_MS + 10 * MINUTE, 0), "all eight were drawn"
    # by a link from before the draw; by one from after it; and once more
    for number, code in ((0, early), (3, code_of(crowd[3]))):
        moved = pressed(crowd[number], code)
        moved = pressed(moved, code_of(moved))
        assert b"another device" in body(crowd[number].visit("/"))
        moved.visit("/")
        crowd[number] = moved
    assert [key for _, key in line.in_order()] == order
    site.settle()  # as after a restart
    site.advance(2 * MINUTE)  # all are ghosts by now
    for browser in crowd:
        browser.visit("/")
    assert set(order) >= {key for _, key in line.in_order()}


def test_a_copy_of_somebody_who_was_admitted_before_the_draw_has_no_place_after_it(
    tmp_path: Path,
) -> None:
    times = {
        "prequeue_start_ms": START_MS + 50 * MINUTE,
        "event_start_ms": START_MS + 60 * MINUTE,
        "event_end_ms": START_MS + 90 * MINUTE,
    }
    site = shop(
        tmp_path,
        sale(shuffle_at_event_start=True, **times),
        calendar_after_minutes=1,
        total_active_users=1,
        new_users_per_minute=1,
        session_duration=1,
    )
    Browser(site).visit("/")
    (early,) = line_up(site, 1)
    sealer, clock = site.decisions.calling._sealer, site.clock
    ((name, value),) = early.jar.items()
    ticket = sealer.open(value, b"r", clock.ms)
    assert ticket is not None
    copy = sealer.seal(marked(ticket), b"r")
    link = f"greenroom=move.{sealed_code(sealer, b'r', marked(ticket), clock.ms, 40_000_000)}"
    assert keep_coming(site, [early], START_MS + 5 * MINUTE) == [early]
    site.advance(START_MS + 55 * MINUTE - clock.ms)
    # one who is seen in the pre-queue, and misses the draw, keeps a place
    (late, *crowd) = line_up(site, 4)
    ((_, value),) = late.jar.items()
    seen = sealer.open(value, b"r", clock.ms)
    assert seen is not None
    late.jar[name] = sealer.seal(marked(seen), b"r")
    keep_coming(site, crowd, START_MS + 66 * MINUTE)
    ledger = site.ledgers["r"].ledger
    line = ledger.line
    for jar, query in (({}, link), ({name: copy}, ""), ({name: copy}, link)):
        browser = Browser(site)
        browser.jar |= jar
        browser.visit("/", "POST" if query else "GET", query, NAVIGATES)
        browser.visit("/")
        known = {*line.slots, *ledger.sessions.inside}
        assert not {ticket.id, successor(ticket.id)} & known
    late.visit("/")
    assert seen.id in {*line.slots, *ledger.sessions.inside}


def test_a_link_may_be_good_for_a_day(tmp_path: Path) -> None:
    site = shop(tmp_path, total_active_users=1, calendar_after_minutes=1)
    Browser(site).visit("/")
    (browser,) = line_up(site, 1)
    (value,) = browser.jar.values()
    sealer = site.decisions.calling._sealer
    ticket = sealer.open(value, b"r", site.clock.ms)
    assert ticket is not None
    lasts_ms = LONGEST_CODE_MS + CODE_MS
    link = f"greenroom=move.{sealed_code(sealer, b'r', marked(ticket), site.clock.ms, lasts_ms)}"
    site.advance(LONGEST_CODE_MS - MINUTE)
    assert b"Continue here" in body(Browser(site).visit("/", "GET", link))
    site.clock.ms += CODE_MS + MINUTE + 1
    assert b"no longer works" in body(Browser(site).visit("/", "GET", link))


def code_of(browser: Browser) -> str:
    reply = browser.visit("/", query="greenroom=move", headers=JSON)
    return str(json.loads(body(reply))["greenroom"]["move"]["url"]).partition("?")[2]


def press(browser: Browser, code: str) -> Any:
    return browser.visit("/", "POST", code, NAVIGATES)


def pressed(_old: Browser, code: str) -> Browser:
    phone = Browser(_old.site)
    press(phone, code)
    assert phone.jar
    return phone


def body(reply: Any) -> bytes:
    assert isinstance(reply, Answer)
    return reply.body


def test_who_arrives_in_the_last_second_comes_after_the_start(tmp_path: Path) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True))
    floor_key = make_key(START_MS + 10 * MINUTE, 0)
    keys = []
    for before_ms in (1_001, 1_000, 1):
        site.clock.ms = START_MS + 10 * MINUTE - before_ms
        browser = Browser(site)
        browser.visit("/")
        (value,) = browser.jar.values()
        ticket = site.decisions.calling._sealer.open(value, b"r", site.clock.ms)
        assert ticket is not None
        keys.append(ticket.key >= floor_key)
    assert keys == [False, True, True]


def test_a_draw_is_held_once_for_an_appointment_however_often_the_room_is_compiled(
    tmp_path: Path,
) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True))
    site.advance(8 * MINUTE)
    crowd = line_up(site, 6)
    keep_coming(site, crowd, START_MS + 10 * MINUTE + 1)
    published = next((tmp_path / "draws").glob("*.json"))
    content, order = (
        published.read_bytes(),
        [told(browser)["greenroom"]["drawnPlace"] for browser in crowd],
    )
    site.settle()
    assert (
        published.read_bytes(),
        [told(browser)["greenroom"]["drawnPlace"] for browser in crowd],
    ) == (content, order)
    site.configure(
        *site.rooms,
        events=[sale(shuffle_at_event_start=True, event_start_ms=START_MS + 15 * MINUTE)],
    )
    assert site.stage.draw is not None
    assert (
        site.stage.draw.draw_id != published.stem
    )  # another time is another draw, with another seed


def test_a_draw_that_came_due_while_nothing_ran_is_held_before_anyone_is_let_in(
    tmp_path: Path,
) -> None:
    event = sale(shuffle_at_event_start=True)
    site = shop(tmp_path, event)
    site.advance(8 * MINUTE)
    crowd = line_up(site, 6)
    payloads = list(site.ledgers["r"].snapshot())
    site.clock.ms = START_MS + 11 * MINUTE
    site.ledgers["r"] = MemoryLedger.restore(
        site.effective(site.rooms[0]), site.clock, bits(3), FlakyJournal(), payloads
    )
    site.settle()
    draw = verify_draw.read_draw(next((tmp_path / "draws").glob("*.json")))
    assert len(draw["receipts"]) == 6
    assert sorted(
        told(browser)["greenroom"]["drawnPlace"]
        for browser in crowd
        if isinstance(browser.visit("/", headers=JSON), Answer)
    )


def test_a_receipt_is_given_to_the_one_who_carries_a_ticket_and_to_no_one_else(
    tmp_path: Path,
) -> None:
    site = shop(tmp_path, sale(shuffle_at_event_start=True))
    site.advance(8 * MINUTE)
    crowd = line_up(site, 2)
    kept = crowd[0].visit("/", query="greenroom=receipt")
    assert isinstance(kept, Answer)
    assert header(kept, b"Cache-Control") == b"private, no-store"
    assert json.loads(kept.body)["receipt"] == told(crowd[0])["greenroom"]["receipt"]
    stranger = Browser(site).visit("/", query="greenroom=receipt")
    assert isinstance(stranger, Answer)
    assert b"greenroom-receipt" not in stranger.body


@pytest.mark.parametrize("held", [True, False])
def test_queue_all_over_an_event_that_rejects_holds_with_a_place_and_the_rooms_page(
    tmp_path: Path, held: bool
) -> None:
    closed = sale(queueing_method="reject", custom_page_html="<p>closed</p>")
    site = shop(tmp_path, closed, queue_all=held, custom_page_html="<p>room</p>")
    site.advance(11 * MINUTE)
    browser = Browser(site)
    page = browser.visit("/")
    assert isinstance(page, Answer)
    assert page.body == (b"<p>room</p>" if held else b"<p>closed</p>")
    said = told(browser)["cfWaitingRoom"]
    method = "fifo" if held else "reject"
    assert (said["isRejectQueue"], said["queueingMethod"]) == (not held, method)
