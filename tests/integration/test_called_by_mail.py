"""A visitor in line is called by e-mail, through a real mail server: the address is confirmed by the
link, the two messages come in time, and nothing of the address is left.
"""

import asyncio
import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
import redis
import structlog
from admission_world import START_MS, small_room
from called_visitors import JSON, CallSite, state_of
from decision_sites import sites_in
from receivers import MailReceiver
from redis_world import RedisServer
from visitors import NAVIGATES, Browser, Site

from greenroom.calls.desk import PER_ADDRESS
from greenroom.decision.verdict import Forward
from greenroom.ledgers.calls import CALLS_FILE
from greenroom.model.answer import Answer
from greenroom.model.event import Event

ADDRESS = "ann.visitor@mail.example"


@pytest.fixture
def mails() -> Iterator[MailReceiver]:
    receiver = MailReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def play(tmp_path: Path, mails: MailReceiver) -> Callable[..., CallSite]:
    """Plays a story on a site with one visitor inside, and one a minute."""

    def played(story: Callable[[CallSite], Awaitable[None]], **room: object) -> CallSite:
        values = {"host": "shop.example", "total_active_users": 100, "call_after_minutes": 1}
        site = sites_in(tmp_path)(**values | room)
        called = CallSite(tmp_path, site, mails.port)
        asyncio.run(story(called))
        assert site.errors == []
        return called

    return played


def link_in(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    found = re.search(r"^http\S+", part.get_content(), re.M)
    assert found is not None
    return found[0].partition("?")[2]


def body(reply: object) -> bytes:
    assert isinstance(reply, Answer)
    return reply.body


async def confirmed(site: CallSite, mails: MailReceiver, browser: Browser, **more: object) -> None:
    assert await site.asks(browser, channel="email", to=ADDRESS, **more) == "check"
    await site.passes(3_000)
    query = link_in(mails.messages[-1][1])
    assert b"<button>Yes, send me messages" in body(
        await site.visit(Browser(site.site), "GET", query)
    )
    assert b"shortly before your turn" in body(await site.visit(Browser(site.site), "POST", query))


def test_a_visitor_confirms_leaves_is_called_twice_and_comes_back_elsewhere(
    play, mails: MailReceiver, tmp_path: Path
) -> None:
    async def story(site: CallSite) -> None:
        waiting = site.joins(count=70)
        site.others.append(waiting)
        await site.passes(300_000)
        site.others.remove(waiting)
        page = body(await site.visit(waiting))
        assert b"Get a message when it is my turn" in page
        assert b"Send me an e-mail" in body(await site.visit(waiting, query="greenroom=call"))
        await confirmed(site, mails, waiting, travel=20)
        assert b"You may close" in body(await site.visit(waiting))
        assert await site.rows() == 1
        began_ms = site.site.clock.ms
        await site.passes(3_600_000, lambda: len(mails.messages) > 1)
        soon_ms = site.site.clock.ms - began_ms
        await site.passes(3_600_000, lambda: len(mails.messages) > 2)
        now_ms = site.site.clock.ms - began_ms
        assert 10 * 60_000 < now_ms - soon_ms < 30 * 60_000
        assert await site.rows() == 0
        _, soon, now = (mail for _, mail in mails.messages)
        assert soon["subject"] == "shop.example: It is your turn soon"
        assert now["subject"] == "shop.example: It is your turn"
        assert now["list-unsubscribe"].startswith("<http://shop.example/?greenroom=call.")
        phone = Browser(site.site)
        assert b"<button>Continue here" in body(await site.visit(phone, "GET", link_in(now)))
        await site.visit(phone, "POST", link_in(now))
        reply = await site.visit(phone)
        if not isinstance(reply, Forward):
            site.others.append(phone)
            await site.passes(60_000)
            reply = await site.visit(phone)
        assert isinstance(reply, Forward)
        assert b"another device" in body(await site.visit(waiting))
        for path in tmp_path.rglob("*"):
            if path.is_file():
                assert ADDRESS.encode() not in path.read_bytes(), path

    play(story, new_users_per_minute=2)


def test_a_visitor_in_a_line_for_nothing_hears_of_what_comes_back(
    play, mails: MailReceiver
) -> None:
    async def story(site: CallSite) -> None:
        site.site.says_left("none", "0")
        waiting = site.joins(count=70)
        assert b"Get a message if something is available again" in body(await site.visit(waiting))
        await confirmed(site, mails, waiting)
        told = lambda: [mail["subject"] for _, mail in mails.messages[1:]]  # noqa: E731
        await site.passes(120_000)
        site.site.says_left()  # nobody says what is left any more, which is no news
        await site.passes(120_000)
        assert told() == []
        site.site.says_left("none", "3")
        await site.passes(60_000)
        assert told() == ["shop.example: Something is available again"]
        link = link_in(mails.messages[1][1])
        assert b"<button>Continue here" in body(await site.visit(Browser(site.site), "GET", link))
        for available in ("none", "2", "none", "1"):
            site.site.says_left(available)
            await site.passes(60_000)
        assert len(told()) == 1, "a second one so soon would be a nuisance"
        site.site.says_left("none")
        await site.passes(660_000)
        site.site.says_left("1")
        await site.passes(60_000)
        assert told() == ["shop.example: Something is available again"] * 2
        ids = {mail["message-id"] for _, mail in mails.messages}
        assert len(ids) == 3, "a mail program shows each"
        await site.passes(3_600_000, lambda: len(told()) > 2)
        assert told()[2:] == ["shop.example: It is your turn soon"]

    play(story, new_users_per_minute=2)


def test_a_visitor_of_a_pre_queue_is_called_to_the_draw_and_to_the_turn(
    tmp_path: Path, mails: MailReceiver
) -> None:
    start_ms = START_MS + 1_500_000
    event = Event(
        id="e", name="sale", prequeue_start_ms=START_MS + 60_000, event_start_ms=start_ms,
        event_end_ms=start_ms + 36_000_000, shuffle_at_event_start=True,
    )  # fmt: skip
    room = small_room(
        host="shop.example",
        total_active_users=100,
        new_users_per_minute=1,
        call_after_minutes=1,
        json_response_enabled=True,
    )

    async def story(site: CallSite) -> None:
        site.site.advance(60_000)
        waiting = site.joins(count=40)
        assert b"Get a message when it is my turn" in body(await site.visit(waiting))
        page = body(await site.visit(waiting, query="greenroom=call"))
        assert b"Everybody who is here before the start gets a place in line by lot" in page
        await confirmed(site, mails, waiting)
        await site.passes(1_500_000, lambda: len(mails.messages) > 1)
        assert 0 <= site.site.clock.ms - (start_ms - 600_000) <= 3_000
        assert mails.messages[1][1]["subject"] == "shop.example: It starts soon"
        phone = Browser(site.site)
        await site.visit(phone, "POST", link_in(mails.messages[1][1]))
        site.others.append(phone)
        await site.passes(start_ms + 6_000 - site.site.clock.ms)
        told = json.loads(body(await site.visit(phone, headers=JSON)))
        assert told["greenroom"]["position"] > 15, "as many minutes"
        site.others.remove(phone)  # the page is closed
        await site.passes(3_600_000, lambda: len(mails.messages) > 2)
        soon_ms = site.site.clock.ms
        await site.passes(3_600_000, lambda: len(mails.messages) > 3)
        assert 5 * 60_000 < site.site.clock.ms - soon_ms < 20 * 60_000
        subjects = [mail["subject"].partition(": ")[2] for _, mail in mails.messages[2:]]
        assert subjects == ["It is your turn soon", "It is your turn"]
        tablet = Browser(site.site)
        await site.visit(tablet, "POST", link_in(mails.messages[3][1]))
        site.others.append(tablet)
        await site.passes(60_000)
        assert isinstance(await site.visit(tablet), Forward)

    called = CallSite(tmp_path, Site(tmp_path, room, events=(event,)), mails.port)
    asyncio.run(story(called))
    assert called.site.errors == []


def test_who_does_not_confirm_gets_one_mail_and_the_row_ends(play, mails: MailReceiver) -> None:
    async def story(site: CallSite) -> None:
        waiting = site.joins(count=60)
        assert await site.asks(waiting, channel="email", to=ADDRESS) == "check"
        await site.passes(31 * 60_000)
        assert (len(mails.messages), await site.rows()) == (1, 0)

    play(story)


def test_a_refused_address_gets_nothing_more_and_the_asker_is_not_told(
    play, mails: MailReceiver
) -> None:
    async def story(site: CallSite) -> None:
        first, second = site.joins(), site.joins()
        assert await site.asks(first, channel="email", to=ADDRESS.replace("@", "+shop@")) == "check"
        await site.passes(3_000)
        query = link_in(mails.messages[0][1]) + ".stop"
        assert await site.rows() == 1, "a GET changes nothing"
        assert b"No, send me nothing" in body(await site.visit(Browser(site.site), "GET", query))
        mailer = (*NAVIGATES, (b"sec-fetch-site", b"cross-site"))
        await site.visit(Browser(site.site), "POST", query, mailer)
        assert await site.asks(second, channel="email", to=ADDRESS.upper()) == "check"
        await site.passes(10_000)
        assert len(mails.messages) == 1

    play(story)


@pytest.mark.parametrize("why", ["its owner refused", "it was asked for too often"])
def test_whoever_asks_is_told_the_same_of_any_address(play, mails: MailReceiver, why: str) -> None:
    async def shown(site: CallSite, browser: Browser) -> str:
        return state_of(await site.visit(browser, query="greenroom=call", headers=JSON))

    async def story(site: CallSite) -> None:
        first = site.joins(count=50)
        assert await site.asks(first, channel="email", to=ADDRESS) == "check"
        await site.passes(3_000)
        if why == "its owner refused":
            query = link_in(mails.messages[0][1]) + ".stop"
            await site.visit(Browser(site.site), "POST", query)
            assert await shown(site, first) == "check"
        else:
            for _ in range(PER_ADDRESS - 1):
                await site.asks(site.joins(), channel="email", to=ADDRESS)
            await site.passes(3_000)
        before = len(mails.messages)
        people = {ADDRESS: site.joins(), "bob@mail.example": site.joins()}
        told: dict[str, list[str]] = {to: [] for to in people}
        for wait_ms in (29 * 60_000, 2 * 60_000):
            for to, browser in people.items():
                told[to].append(await site.asks(browser, channel="email", to=to))
                told[to].append(await shown(site, browser))
            await site.passes(wait_ms)
        for to, browser in people.items():
            told[to].append(await shown(site, browser))
            assert told[to] == ["check"] * 4 + ["none"], to
        assert [str(mail["to"]) for _, mail in mails.messages[before:]] == ["bob@mail.example"]

    play(story)


def test_an_address_is_refused_after_the_row_has_ended(
    play, mails: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.calls.rules.CONFIRM_MS", 4_000)

    async def story(site: CallSite) -> None:
        assert await site.asks(site.joins(), channel="email", to=ADDRESS) == "check"
        await site.passes(9_000)
        assert (len(mails.messages), await site.rows()) == (1, 0)
        query = link_in(mails.messages[0][1]) + ".stop"
        await site.visit(Browser(site.site), "POST", query)
        assert await site.asks(site.joins(), channel="email", to=ADDRESS) == "check"
        await site.passes(10_000)
        assert len(mails.messages) == 1

    play(story)


def test_a_message_that_cannot_be_made_names_no_address_in_the_log(
    play, mails: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_message: object, _server: object, to: str, *_more: object) -> None:
        raise ValueError(f"{to} is no address")

    monkeypatch.setattr("greenroom.calls.sender.mail_of", broken)

    async def story(site: CallSite) -> None:
        assert await site.asks(site.joins(), channel="email", to=ADDRESS) == "check"
        with structlog.testing.capture_logs() as logs:
            await site.passes(9_000)
        assert [(line["event"], line["error"]) for line in logs] == [
            ("call_not_made", "ValueError")
        ]
        assert ADDRESS not in str(logs)

    play(story)


def test_a_stranger_is_sent_three_mails_a_day_at_most_and_a_network_is_limited(
    play, mails: MailReceiver
) -> None:
    async def story(site: CallSite) -> None:
        for number in range(6):
            browser = site.joins(client=f"198.51.100.{number}")
            assert await site.asks(browser, channel="email", to=ADDRESS) == "check"
            await site.passes(3_000)
        assert len(mails.messages) == 3
        browser = site.joins(client="2001:db8::1")
        states = [
            await site.asks(browser, channel="email", to=f"a{number}@mail.example")
            for number in range(102)
        ]
        assert states == ["check"] * 100 + ["many"] * 2
        neighbour = site.joins(client="2001:db8::2")
        assert await site.asks(neighbour, channel="email", to="b@mail.example") == "many"

    play(story)


@pytest.mark.parametrize(
    "to",
    [
        "a@b.example\r\nBcc: c@d.example",
        "a@b.example, c@d.example",
        "a@b.example\n",
        "<a@b.example>",
        '"a b"@c.example',
        "a@localhost",
        "a@[127.0.0.1]",
        "a" * 65 + "@b.example",
        "ä@b.example",
        "",
    ],
)
def test_what_is_no_plain_address_is_refused(play, mails: MailReceiver, to: str) -> None:
    async def story(site: CallSite) -> None:
        assert await site.asks(site.joins(), channel="email", to=to) == "invalid"
        assert await site.rows() == 0

    play(story)


def test_a_site_of_any_host_and_a_name_of_several_lines_put_nothing_into_mails(
    play, mails: MailReceiver
) -> None:
    async def story(site: CallSite) -> None:
        assert await site.asks(site.joins(), channel="email", to=ADDRESS) == "invalid"

    play(story, host="*")


def test_leaving_the_line_and_the_end_of_a_room_end_the_row(play, mails: MailReceiver) -> None:
    async def story(site: CallSite) -> None:
        leaves, stays, stops = site.joins(), site.joins(), site.joins()
        for number, browser in enumerate((leaves, stays, stops)):
            to = f"v{number}@mail.example"
            assert await site.asks(browser, channel="email", to=to) == "check"
        assert await site.asks(stops) == "off"
        await site.visit(leaves, "POST", "greenroom=leave", NAVIGATES)
        await site.settled()
        assert await site.rows() == 1
        site.site.decisions.table.rooms.clear()
        for _ in range(25):
            site.site.clock.ms += 3_000
            await site.sender.look()
        assert await site.rows() == 0

    play(story)


def test_only_somebody_in_line_and_only_the_own_page_can_ask(play, mails: MailReceiver) -> None:
    async def story(site: CallSite) -> None:
        stranger = Browser(site.site)
        reply = await site.visit(stranger, "POST", "greenroom=call")
        assert isinstance(reply, Answer)
        assert reply.status == 303
        forged = await site.visit(stranger, "POST", "greenroom=call.forged")
        assert b"no longer works" in body(forged)
        waiting = site.joins()
        headers = (
            (b"accept", b"application/json"),
            (b"sec-fetch-site", b"cross-site"),
            (b"greenroom-call", b'{"channel":"email","to":"a@b.example"}'),
        )
        assert state_of(await site.visit(waiting, "POST", "greenroom=call", headers)) == "none"
        assert await site.rows() == 0

    play(story)


def test_a_place_that_moves_takes_the_row_along(play, mails: MailReceiver) -> None:
    async def story(site: CallSite) -> None:
        waiting = site.joins(count=40)
        await confirmed(site, mails, waiting)
        await site.passes(3_600_000, lambda: len(mails.messages) > 1)
        assert "soon" in mails.messages[1][1]["subject"]
        phone = Browser(site.site)
        await site.visit(phone, "POST", link_in(mails.messages[1][1]))
        await site.settled()
        assert await site.rows() == 1
        await site.passes(3_600_000, lambda: len(mails.messages) > 2)
        assert mails.messages[2][1]["subject"] == "shop.example: It is your turn"
        tablet = Browser(site.site)
        assert b"<button>Continue here" in body(
            await site.visit(tablet, "GET", link_in(mails.messages[2][1]))
        )
        await site.visit(tablet, "POST", link_in(mails.messages[2][1]))
        assert b"another device" in body(await site.visit(phone))

    play(story, new_users_per_minute=2)


FILE = """
origin = "{origin}"
{more}
[notifications]
smtp_host = "127.0.0.1"
smtp_port = {port}
smtp_security = "none"
smtp_from = "line@shop.example"
[[rooms]]
name = "main"
host = "shop.example.com"
total_active_users = 1
new_users_per_minute = 60
session_duration = 1
confirm_newcomers = false
call_after_minutes = 1
"""
SEVERAL = """
redis = "{redis}/{database}"
global_redis = "{redis}/0"
datacenter = "{name}"
datacenters = ["fra", "nyc"]
"""
ASKED = {
    "Accept": "application/json",
    "Content-Length": "0",
    "Greenroom-Call": json.dumps({"channel": "email", "to": ADDRESS}),
}


def test_a_visitor_of_one_data_center_is_called_once_and_comes_back_in_another(
    greenroom, origin, server: RedisServer, mails: MailReceiver
) -> None:
    def started(name: str, database: int):
        file = greenroom.folder / f"{name}.toml"
        more = SEVERAL.format(redis=server.url.rpartition("/")[0], database=database, name=name)
        file.write_text(FILE.format(origin=origin.url, port=mails.port, more=more))
        return greenroom.serve("--config", str(file), "--data", str(greenroom.folder / name))

    fra, nyc = started("fra", 1), started("nyc", 2)
    inside, waiting = fra.visitor(), nyc.visitor()
    inside.wait_until_in()
    greenroom.eventually(lambda: b"You are in line" in waiting.get("/").body, "the place is real")
    said = waiting.get("/?greenroom=call", "POST", ASKED)
    assert json.loads(said.body)["greenroom"]["call"]["state"] == "check"
    greenroom.eventually(lambda: len(mails.messages) == 1, "the mail that asks")
    phone = fra.visitor()
    confirming = "/?" + link_in(mails.messages[0][1]), "POST", {"Content-Length": "0"}
    greenroom.eventually(
        lambda: b"shortly before your turn" in phone.get(*confirming).body,
        "fra has the key of nyc's secrets",
    )
    greenroom.eventually(lambda: len(mails.messages) == 2, "the next in line is called")
    assert "It is your turn" in mails.messages[1][1]["subject"]
    pressed = link_in(mails.messages[1][1])
    greenroom.eventually(
        lambda: phone.get("/?" + pressed, "POST", {"Content-Length": "0"}).status != 503,
        "both data centers agree",
    )
    greenroom.eventually(lambda: b"another device" in waiting.get("/").body, "the place has moved")
    assert (len(mails.messages), rows(greenroom.folder / "fra", server)) == (2, [])
    assert fra.stop() == nyc.stop() == 0


@pytest.mark.parametrize("shape", ["serve", "edge"])
def test_a_running_greenroom_calls_and_keeps_no_byte(
    greenroom, origin, server: RedisServer, mails: MailReceiver, shape: str
) -> None:
    path = greenroom.folder / "greenroom.toml"
    path.write_text(FILE.format(origin=origin.url, port=mails.port, more=""))
    places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(greenroom.data))
    env = {"GREENROOM_REDIS": server.url} if shape == "edge" else {}
    running = greenroom.run(shape, "--config", str(path), *places, env=env).wait_until_ready()
    inside, waiting = running.visitor(), running.visitor()
    inside.wait_until_in()
    assert waiting.get("/").waiting
    greenroom.eventually(lambda: b"You are in line" in waiting.get("/").body, "the place is real")
    said = waiting.get("/?greenroom=call", "POST", ASKED)
    assert json.loads(said.body)["greenroom"]["call"]["state"] == "check"
    greenroom.eventually(lambda: len(mails.messages) == 1, "the mail that asks")
    phone = running.visitor()
    phone.get("/?" + link_in(mails.messages[0][1]), "POST", {"Content-Length": "0"})
    greenroom.eventually(lambda: len(mails.messages) == 2, "the next in line is called")
    assert "It is your turn" in mails.messages[1][1]["subject"]
    greenroom.eventually(lambda: not rows(greenroom.data, server), "no row is left")
    assert running.stop() == 0
    for path in greenroom.folder.rglob("*"):
        if path.is_file():
            assert ADDRESS.encode() not in path.read_bytes(), path
    assert ADDRESS not in running.output


def rows(data: Path, server: RedisServer) -> list[object]:
    """In the file and in Redis."""
    client = redis.Redis.from_url(server.url)
    found: list[object] = list(client.hkeys("greenroom:{calls}:rows"))  # type: ignore[arg-type]
    for key in client.scan_iter("*"):
        assert ADDRESS.encode() not in (client.dump(key) or b""), key
    client.close()
    if (data / CALLS_FILE).exists():
        with sqlite3.connect(data / CALLS_FILE) as file:
            found += file.execute("SELECT ticket FROM calls").fetchall()
    return found
