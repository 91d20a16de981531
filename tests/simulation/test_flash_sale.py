"""The flash sale, as it is told where events were announced, from the landing page to the last
redirect, in virtual time.

Ordinary traffic, a pre-queue that is shuffled, a sale, and then 48 hours in which everybody new is
turned away while those inside get five minutes to finish. Visitors carry cookies and see pages;
nothing looks behind the counter but where it says so.
"""

import json
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from random import Random

import pytest
from admission_world import START_MS, small_room
from visitors import NAVIGATES, Browser, Site, header

from greenroom.admission.schedule import Phase
from greenroom.cli import verify_draw
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.event import Event

MINUTE, HOUR = 60_000, 3_600_000
OPENS_MS, SALE_MS, ENDS_MS = START_MS + HOUR, START_MS + 2 * HOUR, START_MS + 3 * HOUR
OVER_MS = ENDS_MS + 48 * HOUR
EARLY, LATE = 100, 40
STRAY = 25
"""Places by which someone may be early or late: a refresh is up to 22 s, in which the first twenty
are let in.
"""
JSON = ((b"accept", b"application/json"),)
SALE = Event(
    id="e1",
    name="spring_flash_sale",
    prequeue_start_ms=OPENS_MS,
    event_start_ms=SALE_MS,
    event_end_ms=ENDS_MS,
    shuffle_at_event_start=True,
    custom_page_html="{{#isEventPrequeueing}}Soon: {{timeUntilEventStartFormatted}}{{/isEventPrequeueing}}"
    "{{^isEventPrequeueing}}Waiting: {{waitTimeFormatted}}{{/isEventPrequeueing}}",
)
CLOSED = Event(
    id="e2",
    name="sale_is_over",
    event_start_ms=ENDS_MS,
    event_end_ms=OVER_MS,
    queueing_method="reject",
    session_duration=5,
    disable_session_renewal=True,
    custom_page_html="The sale is over. {{waitTimeFormatted}}",
)


class Shopper(Browser):
    """A visitor who comes, waits as told, shops for a while and stops."""

    def __init__(self, site: Site, name: int, came_ms: int) -> None:
        super().__init__(site, client=f"192.0.2.{name % 250}")
        self.name = name
        self.came_ms = came_ms
        self.entered_ms = 0
        self.shops = 3
        self.told: dict = {}

    def step(self) -> int:
        """One visit; when the next one is due, 0 for never."""
        reply = self.visit("/")
        if isinstance(reply, Forward):
            self.entered_ms = self.entered_ms or self.site.clock.ms
            self.shops -= 1
            return self.site.clock.ms + 45_000 if self.shops > 0 else 0
        return self.site.clock.ms + self.retry_s * 1000 if self.retry_s else 0

    def see(self) -> dict:
        """What the page would show, as JSON; too early to be a try, so it changes nothing."""
        reply = self.visit("/", headers=JSON)
        assert isinstance(reply, Answer)
        self.told = json.loads(reply.body)
        return self.told


class Street:
    """Everybody, in the order of time."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.due: list[tuple[int, int, Shopper]] = []
        self.everybody: list[Shopper] = []

    def come(self, at_ms: int) -> Shopper:
        shopper = Shopper(self.site, len(self.everybody), at_ms)
        self.everybody.append(shopper)
        heappush(self.due, (at_ms, shopper.name, shopper))
        return shopper

    def until(self, end_ms: int) -> None:
        while self.due and self.due[0][0] <= end_ms:
            at_ms, _, shopper = heappop(self.due)
            self.site.advance(max(0, at_ms - self.site.clock.ms))
            next_ms = shopper.step()
            if next_ms:
                heappush(self.due, (next_ms, shopper.name, shopper))
        self.site.advance(end_ms - self.site.clock.ms)


class Story:
    """What was seen at each turn of the story."""

    def __init__(self, folder: Path) -> None:
        draw = Random(7)
        room = small_room(
            total_active_users=20,
            new_users_per_minute=30,
            session_duration=2,
            json_response_enabled=True,
        )
        self.site = Site(folder, room, events=(SALE, CLOSED))
        self.folder = folder
        street = self.street = Street(self.site)
        self.usual = [street.come(START_MS + number * 5 * MINUTE) for number in range(5)]
        street.until(OPENS_MS - MINUTE)
        self.inside = street.come(OPENS_MS - 30_000)
        self.inside.shops = 20
        # Nine in ten line up early in the pre-queue, as where the time zone is kind to them.
        self.early = [
            street.come(OPENS_MS + draw.randrange(10 * MINUTE if number % 10 else 55 * MINUTE))
            for number in range(EARLY - 1)
        ]
        street.until(OPENS_MS + 30 * MINUTE)
        self.early.append(street.come(self.site.clock.ms))
        self.stranger_json = self.early[-1].see()
        self.stage_early = self.site.stage
        street.until(SALE_MS - 1)
        self.before = [shopper.see() for shopper in self.early]
        self.held_before = [shopper.entered_ms for shopper in self.early]
        self.late = [street.come(SALE_MS + draw.randrange(10 * MINUTE)) for _ in range(LATE)]
        street.until(SALE_MS + 1)
        self.file = next((folder / "draws").glob("*.json"))
        street.until(SALE_MS + 5 * MINUTE)
        self.kept = [shopper.visit("/", query="greenroom=receipt") for shopper in self.early]
        street.until(ENDS_MS - 10 * MINUTE)
        self.buying = street.come(ENDS_MS - MINUTE)
        self.buying.shops = 100
        self.idle = street.come(ENDS_MS - MINUTE)
        self.idle.shops = 1
        street.until(ENDS_MS + 1)
        self.rejected = Browser(self.site)
        self.turned_away = self.rejected.visit("/")
        self.turned_away_json = json.loads(self.rejected.visit("/", headers=JSON).body)
        street.due = []
        self.grace = {}
        for minutes in (1, 2, 3, 4, 5, 6):
            street.until(ENDS_MS + minutes * MINUTE - 30_000)
            self.grace[minutes] = isinstance(self.buying.visit("/"), Forward)
        self.site.clock.ms = OVER_MS - 1
        self.last_minute = Browser(self.site).visit("/")
        self.site.advance(1)
        self.afterwards = Browser(self.site).visit("/")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    told = Story(tmp_path_factory.mktemp("sale"))
    yield told
    assert told.site.errors == []


def test_before_the_pre_queue_the_room_is_its_usual_self(story: Story) -> None:
    assert all(shopper.entered_ms == shopper.came_ms for shopper in story.usual)


def test_the_pre_queue_holds_every_newcomer_and_no_one_who_is_inside(story: Story) -> None:
    assert story.held_before == [0] * EARLY
    assert story.inside.entered_ms == story.inside.came_ms
    assert story.inside.shops == 0


def test_people_in_the_pre_queue_are_told_what_is_published_and_what_is_ours(story: Story) -> None:
    told = story.stranger_json["cfWaitingRoom"]
    assert [
        told[name] for name in ("isEventActive", "isEventPrequeueing", "shuffleAtEventStart")
    ] == [True, True, True]
    assert (told["timeUntilEventStart"], told["timeUntilEventStartFormatted"]) == (30, "30 minutes")
    assert (told["timeUntilEventEnd"], told["timeUntilEventEndFormatted"]) == (
        90,
        "1 hour and 30 minutes",
    )
    assert (told["waitTimeKnown"], told["queueAll"], told["queueingMethod"]) == (
        False,
        False,
        "fifo",
    )
    assert story.stage_early.effective.phase is Phase.PREQUEUE
    seals = {state["greenroom"]["drawCommitment"] for state in story.before}
    assert (
        seals
        == {story.stranger_json["greenroom"]["drawCommitment"]}
        == {story.stage_early.draw.commitment}
    )
    assert len({state["greenroom"]["receipt"] for state in story.before}) == EARLY
    assert {
        (state["greenroom"]["drawSeed"], state["greenroom"]["drawnPlace"]) for state in story.before
    } == {("", 0)}


def test_every_receipt_leads_to_its_place_in_the_published_draw(story: Story) -> None:
    draw = verify_draw.read_draw(story.file)
    assert list(verify_draw.problems(draw, story.before[0]["greenroom"]["drawCommitment"])) == []
    places = [verify_draw.place(draw, state["greenroom"]["receipt"]) for state in story.before]
    assert sorted(place for place in places if place) == list(range(1, len(draw["receipts"]) + 1))
    assert len(draw["receipts"]) == EARLY
    for shopper, reply, place in zip(story.early, story.kept, places, strict=True):
        assert isinstance(reply, Answer), shopper.name
        assert b"attachment" in header(reply, b"Content-Disposition")
        kept = json.loads(reply.body)
        assert (kept["place"], kept["of"], kept["commitment"]) == (place, EARLY, draw["commitment"])


def test_the_drawn_enter_in_the_order_drawn_and_not_in_that_of_arrival(story: Story) -> None:
    draw = verify_draw.read_draw(story.file)
    entered = sorted(
        zip(story.early, story.before, strict=True), key=lambda pair: pair[0].entered_ms
    )
    order = [verify_draw.place(draw, state["greenroom"]["receipt"]) for _, state in entered]
    strayed = [abs(place - index) for index, place in enumerate(order, 1)]
    assert max(strayed) <= STRAY
    arrivals = [shopper.came_ms for shopper, _ in entered]
    discordant = sum(arrivals[i] > arrivals[j] for i in range(EARLY) for j in range(i + 1, EARLY))
    assert 0.4 < discordant / (EARLY * (EARLY - 1) / 2) < 0.6


def test_a_visitor_who_comes_after_the_start_stands_behind_the_pre_queue_in_order_of_arrival(
    story: Story,
) -> None:
    assert all(shopper.entered_ms for shopper in story.early + story.late)
    waited = [
        shopper
        for shopper in story.late
        if shopper.came_ms < max(early.entered_ms for early in story.early) - MINUTE
    ]
    assert len(waited) > 20
    assert (
        min(shopper.entered_ms for shopper in waited)
        > sorted(early.entered_ms for early in story.early)[-10]
    )
    order = {
        shopper.name: place
        for place, shopper in enumerate(sorted(waited, key=lambda shopper: shopper.came_ms))
    }
    entered = sorted(waited, key=lambda shopper: shopper.entered_ms)
    assert max(abs(order[shopper.name] - index) for index, shopper in enumerate(entered)) <= STRAY


def test_after_the_sale_newcomers_get_the_page_of_the_second_event_without_refresh(
    story: Story,
) -> None:
    assert isinstance(story.turned_away, Answer)
    assert story.turned_away.body == b"The sale is over. unavailable"
    assert header(story.turned_away, b"Refresh") == b""
    told = story.turned_away_json["cfWaitingRoom"]
    states = ("isRejectQueue", "isEventActive", "isEventPrequeueing", "shuffleAtEventStart")
    assert [told[name] for name in states] == [True, True, False, False]
    assert told["refreshIntervalSeconds"] == 0
    assert isinstance(story.last_minute, Answer)


def test_those_inside_get_five_minutes_regardless_of_what_they_do(story: Story) -> None:
    """The last renewal was a quarter of a minute before the end; minute 1 here is half a minute
    after it.
    """
    assert story.grace == {1: True, 2: True, 3: True, 4: True, 5: True, 6: False}


def test_after_48_hours_the_room_is_its_usual_self_again(story: Story) -> None:
    assert isinstance(story.afterwards, Forward)


def test_the_pages_say_what_the_templates_of_the_events_say(tmp_path: Path) -> None:
    site = Site(tmp_path, small_room(), events=(SALE, CLOSED))
    assert isinstance(Browser(site).visit("/", headers=NAVIGATES), Forward)
    site.advance(OPENS_MS - START_MS)
    soon = Browser(site).visit("/")
    assert isinstance(soon, Answer)
    assert soon.body == b"Soon: 1 hour"
    site.advance(SALE_MS - OPENS_MS - 1)
    assert Browser(site).visit("/").body == b"Soon: 1 minute"
