"""What is left: what operators may say, what visitors are told of it, and when they are warned."""

import json
from pathlib import Path
from typing import Any

import pytest
from config_service_in_memory import DeskInMemory
from decision_sites import sites_in
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from visitors import Browser

from greenroom.calls.messages import CallMessage, mail_of, message, push_body
from greenroom.calls.web_push import MESSAGE_MAX
from greenroom.configuration import rooms, zones
from greenroom.decision.verdict import Forward
from greenroom.model.call import CONFIRM, EMAIL, NOW, RETURNED, SOON, VisitorCall
from greenroom.model.offer import OFFERS_MAX, Offer, fewer_than, left_of
from greenroom.model.room import LANGUAGES, Room
from greenroom.model.visit import Estimate, Held
from greenroom.offers import changes
from greenroom.offers.from_origins import OriginOffers
from greenroom.outbound.mail import MailServer
from greenroom.pages import compile_page
from greenroom.pages.brand import NO_BRAND
from greenroom.pages.language import language
from greenroom.web.config_service import ChangeContext

NOW_MS = 1_790_000_000_000
ROOM = {"name": "a", "host": "*", "total_active_users": 1, "new_users_per_minute": 1}
PAGE = compile_page(Room(**ROOM), offers=True)
STALLS: dict[str, Any] = {"name": "Stalls", "price": "€45 to €95", "available": "few"}
CIRCLE: dict[str, Any] = {"name": "Circle & Box", "available": 12}


def offer(available: str, name: str = "Stalls") -> Offer:
    return Offer(name=name, price="€45", available=available, as_of_ms=NOW_MS)


def held(*offers: Offer, ahead: int = 5, **more: Any) -> Held:
    said: dict[str, Any] = {"position": ahead + 1, "ahead": ahead, "in_line": True, **more}
    return Held(NOW_MS, "fifo", NOW_MS, 20, 20, offers=offers, **said)


@pytest.fixture
def config_service() -> DeskInMemory:
    return DeskInMemory()


@pytest.fixture
def room(config_service: DeskInMemory) -> tuple[str, str]:
    zone = config_service.do(zones.create({"name": "example.com"}, lambda _pointer, _url: []))["id"]
    shop = {
        "name": "shop",
        "host": "shop.example.com",
        "new_users_per_minute": 200,
        "total_active_users": 300,
    }
    return zone, config_service.do(rooms.create(zone, shop))["id"]


def test_offers_are_replaced_together_and_say_since_when(
    config_service: DeskInMemory, room: tuple[str, str]
) -> None:
    earlier = CIRCLE | {"as_of": "2026-11-27T08:00:00Z"}
    shown = config_service.do(changes.replace_all(*room, [STALLS, earlier]))
    assert [one["as_of"] for one in shown] == ["2023-11-14T22:13:23Z", "2026-11-27T08:00:00Z"]
    assert [one["available"] for one in shown] == ["few", 12]
    assert changes.show(changes.offers_of(config_service.known, *room)) == shown
    assert config_service.do(changes.replace_all(*room, [])) == []


@pytest.mark.parametrize(
    ("offers", "faults"),
    [
        ({}, [("BAD_BODY", "")]),
        ([STALLS] * (OFFERS_MAX + 1), [("TOO_MANY", "")]),
        ([STALLS, {}], [("REQUIRED", "/1/available"), ("REQUIRED", "/1/name")]),
        ([1, STALLS | {"name": 1}], [("BAD_BODY", "/0"), ("INVALID", "/1/name")]),
        ([STALLS | {"available": "some"}], [("INVALID", "/0/available")]),
        ([STALLS | {"available": -1}], [("INVALID", "/0/available")]),
        ([STALLS | {"available": True}], [("INVALID", "/0/available")]),
        ([STALLS | {"available": 10_000_000}], [("INVALID", "/0/available")]),
        ([STALLS | {"name": "a\nb"}], [("INVALID", "/0/name")]),
        ([STALLS | {"as_of": "noon"}], [("INVALID", "/0/as_of")]),
        ([STALLS | {"seats": 3}], [("UNKNOWN_FIELD", "/0/seats")]),
    ],
)
def test_what_is_no_offer_is_refused(
    config_service: DeskInMemory,
    room: tuple[str, str],
    offers: Any,
    faults: list[tuple[str, str]],
) -> None:
    assert config_service.refusal(changes.replace_all(*room, offers)) == faults


@given(
    st.lists(st.sampled_from(["many", "few", "none", "0", "1", "7"]), max_size=4),
    st.integers(0, 20),
)
def test_a_warning_is_only_given_where_the_numbers_prove_it(left: list[str], ahead: int) -> None:
    offers = tuple(offer(available) for available in left)
    counted = [0 if available == "none" else available for available in left]
    known = bool(left) and not {"many", "few"} & set(left)
    total = sum(map(int, counted)) if known else None
    assert left_of(offers) == total
    assert fewer_than(offers, ahead) is (total is not None and 0 < total <= ahead)


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize(
    ("left", "ahead", "warning"),
    [
        (("3", "2"), 5, "short"),
        (("3", "3"), 5, ""),
        (("3", "few"), 50, ""),
        (("0", "none"), 0, "gone"),
    ],
)
def test_page_and_update_say_what_is_left_and_what_it_means(
    tag: str, left: tuple[str, ...], ahead: int, warning: str
) -> None:
    words = language(tag).offers
    page = compile_page(Room(**ROOM, default_template_language=tag), offers=True)
    state = held(*(offer(one) for one in left), ahead=ahead)
    html, news = page.html(state).decode(), json.loads(page.update(state, b"fifo"))
    text = words[warning] if warning else ""
    assert f"<b id=short{'' if text else ' hidden'}>{text}</b>" in html
    assert news["greenroom"]["words"]["short"] == text
    lines = news["greenroom"]["words"]["offers"]
    assert f"<dd id=offers>{lines}</div>" in html
    assert lines.startswith("Stalls: €45 · ")
    assert len(lines.splitlines()) == len(left) + 1


@pytest.mark.parametrize("tag", LANGUAGES)
def test_whoever_waits_while_all_is_sold_out_may_be_told_of_what_comes_back(tag: str) -> None:
    room = Room(**ROOM, default_template_language=tag, call_after_minutes=10)
    page = compile_page(room, offers=True, moves=True, calls=True)
    words, link = language(tag).call, "<a id=call href="
    for state, said in (
        (held(offer("none")), words["returns"]),
        (held(offer("few")), ""),
        (held(offer("few"), estimate=Estimate(660.0, 660.0, 660.0)), words["add"]),
        (held(offer("few"), estimate=None), ""),
        (held(offer("few"), estimate=None, least_minutes=11), words["add"]),
        (held(offer("few"), estimate=None, queue_all=True), words["add"]),
        (held(offer("few"), estimate=None, origin_stops="unhealthy"), words["add"]),
    ):
        shown = page.html(state).decode().partition(link)[2].partition(">")[2].partition("<")[0]
        assert shown == said
        assert json.loads(page.update(state, b"fifo"))["greenroom"]["words"]["call"] == said


def test_json_and_templates_have_the_offers_as_they_are() -> None:
    state = held(offer("few"), offer("2", "Circle"))
    assert json.loads(PAGE.json(state))["greenroom"]["offers"] == {
        "soldOut": False,
        "outnumbered": False,
        "items": [
            {"name": name, "price": "€45", "available": left, "asOf": "2026-09-21T14:13:20.000Z"}
            for name, left in (("Stalls", "few"), ("Circle", 2))
        ],
    }
    template = "{{#greenroomOffersKnown}}{{greenroomOffersFormatted}}{{/greenroomOffersKnown}}"
    own = compile_page(Room(**ROOM, custom_page_html=template), offers=True)
    assert own.html(state).decode() == "Stalls: €45, few left; Circle: €45, 2 left"


def test_a_room_that_never_said_what_is_left_has_none_of_it() -> None:
    page = compile_page(Room(**ROOM))
    state = Held(NOW_MS, "fifo", NOW_MS, 20, 20, position=6, ahead=5, in_line=True)
    assert b"offers" not in page.html(state).partition(b"<style>")[0]
    assert b"id=offers" not in page.html(state)
    assert b'"offers"' not in page.update(state, b"fifo")
    assert b'"offers"' not in page.json(state)


def test_visitors_without_a_place_share_a_page_only_with_the_same_offers() -> None:
    new = {"position": 0, "in_line": False, "ahead": 0}
    first, second = (PAGE.html(held(offer(left), **new)) for left in ("few", "many"))
    assert first != second


# -- the header of the application -----------------------------------------------------------------


class Service:
    """As ConfigService, on a configuration in memory."""

    def __init__(self, desk: DeskInMemory) -> None:
        self.desk = desk
        self.authors: list[str] = []

    def look(self, ask: Any) -> Any:
        return ask(self.desk.known)

    def trial(self, plan: Any) -> Any:
        known = self.desk.known
        return plan(known, ChangeContext(NOW_MS, str)).answer(known)

    def change(self, author: str, plan: Any) -> Any:
        self.authors.append(author)
        return self.desk.do(plan)


async def test_what_the_application_says_is_written_once_and_what_is_wrong_is_logged_once(
    config_service: DeskInMemory, room: tuple[str, str]
) -> None:
    service = Service(config_service)
    offers = OriginOffers(service)  # type: ignore[arg-type]
    shop = config_service.known.rooms[room[1]].record

    async def says(*values: Any) -> list[str]:
        """The newest of these counts. What is left then."""
        for value in values:
            said = value if isinstance(value, bytes) else json.dumps(value).encode()
            offers.said(shop, said)
        await offers.write()
        return [one.available for one in config_service.known.offers_of(room[1]) or ()]

    assert await says([STALLS], [STALLS, CIRCLE]) == ["few", "12"]
    assert await says([STALLS, CIRCLE], [CIRCLE | {"available": "12"}, STALLS]) == ["12", "few"]
    assert await says([CIRCLE | {"as_of": "2026-11-27T08:00:00Z"}, STALLS]) == ["12", "few"]
    assert service.authors == ["application"] * 2
    with capture_logs() as logs:
        for wrong in (
            b"few",
            b"\xff",
            {},
            [{"name": "a"}],
            b"[" * 8_000,
            b"[" * 9_000,
            [STALLS] * 21,
        ):
            assert await says(wrong) == ["12", "few"]
    assert [(one["event"], one["room"]) for one in logs] == [("offers_header_refused", "shop")]
    assert await says([]) == []
    with capture_logs() as logs:
        await says(b"few")
    assert len(logs) == 1


@pytest.mark.parametrize("allowed", [False, True])
def test_only_responses_to_admitted_visitors_say_it_and_only_where_allowed(
    tmp_path: Path, allowed: bool
) -> None:
    site = sites_in(tmp_path)(offers_header=allowed)
    heard: list[tuple[str, bytes]] = []
    site.decisions.offers_received = lambda room, said: heard.append((room.id, said))
    reply = Browser(site).visit()
    assert isinstance(reply, Forward)
    site.decisions.receive_offers(Forward(), b"[]")
    assert heard == []
    site.decisions.receive_offers(reply, b"[]")
    assert heard == [("r", b"[]")] * allowed


# -- messages to visitors who are called -----------------------------------------------------------


def called(kind: str, *offers: Offer, url: str = "", tag: str = "en-US") -> CallMessage:
    call = VisitorCall(EMAIL, "a@b.example", 1, NOW_MS, tag, "https://shop.example/", 600_000)
    return message(kind, call, NO_BRAND, "shop.example", url, "", None, 10, offers)


def mailed(made: CallMessage) -> list[str]:
    mail = mail_of(
        made, MailServer("", 25, "none", sender="a@b.example"), "c@d.example", NOW_MS, "n"
    )
    return [part.get_content() for part in mail.iter_parts()]


def pushed(made: CallMessage) -> str:
    return str(json.loads(push_body(made))["body"])


@pytest.mark.parametrize("kind", [SOON, RETURNED, NOW])
def test_messages_say_what_is_left_in_one_line(kind: str) -> None:
    made = called(kind, offer("few", "A & B"), offer("none", "Circle"), offer("1200", "Box"))
    left = "A & B: €45 · few left; Circle: €45 · sold out; Box: €45 · 1,200 left"
    plain, html = mailed(made)
    assert plain.startswith(f"{left}\n\n{made.body}")
    assert f"<p>{left.replace('&', '&amp;')}</p>" in html
    assert pushed(made) == f"{made.body.rstrip(':')}\n{left}"


@pytest.mark.parametrize("tag", LANGUAGES)
def test_messages_say_plainly_that_everything_is_sold_out(tag: str) -> None:
    made = called(NOW, offer("none"), offer("0", "Circle"), tag=tag)
    assert made.stock == language(tag).offers["gone"]


@pytest.mark.parametrize(("kind", "offers"), [(CONFIRM, [offer("few")]), (NOW, [])])
def test_other_messages_say_nothing_of_it(kind: str, offers: list[Offer]) -> None:
    made = called(kind, *offers)
    assert mailed(made)[0].startswith(made.body)
    assert "<p></p>" not in mailed(made)[1]
    assert pushed(made) == made.body.rstrip(":")


def test_a_message_of_many_offers_stays_short_and_fits_a_push_service() -> None:
    many = [offer("few", f"Category {number} {'x' * 40}") for number in range(OFFERS_MAX)]
    made = called(NOW, *many)
    assert made.stock.endswith("left …")
    assert made.stock.count(";") == 2
    assert len(called(NOW, offer("few", "x" * 100), *many).stock) < 260
    long = called(NOW, *many, url=f"https://shop.example/{'x' * (MESSAGE_MAX - 300)}")
    assert len(push_body(long)) <= MESSAGE_MAX
    assert pushed(long) == long.body.rstrip(":")
