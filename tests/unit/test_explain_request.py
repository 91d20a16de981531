"""What is told about a request: the room and why that one, the rules, the settings and their
source, what comes of it.
"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from greenroom.cli import app
from greenroom.config_file.load import read_config
from greenroom.configuration.explain_request import ExplainRequest
from greenroom.decision.explain import (
    Explanation,
    RoomDefinition,
    Seats,
    described_arrival,
    explain,
)
from greenroom.errors import InvalidConfig
from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.rules import NOTHING_KNOWN
from greenroom.runtime.explain import explained

NOW_MS = 1_000_000_000_000
BROWSER = (("Accept", "text/html"), ("User-Agent", "Mozilla/5.0"))


def room(name: str = "shop", host: str = "shop.example", **more) -> Room:
    return Room(
        **{
            "id": name,
            "name": name,
            "host": host,
            "total_active_users": 10,
            "new_users_per_minute": 5,
            **more,
        }
    )


def asked(
    url: str,
    *plans: RoomDefinition,
    ledgers: dict[str, Seats] | None = None,
    headers=BROWSER,
    method: str = "GET",
) -> Explanation:
    arrival = described_arrival(url, method, headers, "192.0.2.7")
    assert isinstance(arrival, Arrival)
    return explain(arrival, plans, {}, NOTHING_KNOWN, NOW_MS, ledgers or {})


def event(**more) -> Event:
    times = {"event_start_ms": NOW_MS - 1, "event_end_ms": NOW_MS + 3_600_000}
    return Event(**{"id": "e", "name": "sale", **times, **more})


def test_the_most_specific_route_wins_and_the_others_say_why_not() -> None:
    plans = [
        RoomDefinition(room("all", "*")),
        RoomDefinition(room("site")),
        RoomDefinition(
            room(
                "sale",
                path="/sale",
                additional_routes=(Route("shop.example", "/deals"),),
                cookie_suffix="s",
            )
        ),
        RoomDefinition(room("deep", path="/sale/shoes/red")),
        RoomDefinition(room("other", "other.example")),
    ]
    told = asked("https://shop.example/sale/%73hoes/?x=1", *plans)
    assert (told.room, told.url) == ("sale", "https://shop.example/sale/shoes/?x=1")
    seen = {(route.room, route.path): route.why for route in told.routes}
    assert set(seen) == {
        ("sale", "/sale"),
        ("sale", "/deals"),
        ("site", "/"),
        ("deep", "/sale/shoes/red"),
        ("all", "/"),
    }
    assert told.routes[0].chosen
    assert sum(route.chosen for route in told.routes) == 1
    assert seen["site", "/"] == "also matches, but its path is shorter"
    assert seen["all", "/"] == "also matches, but * is less specific than the chosen host"
    assert (
        seen["deep", "/sale/shoes/red"]
        == "the path does not begin with /sale/shoes/red, segment by segment"
    )
    assert told.cookie == "__cfwaitingroom_s; Domain=shop.example; Path=/"


def test_without_a_room_the_request_goes_on() -> None:
    told = asked("http://nowhere.example/", RoomDefinition(room()))
    assert (told.result, told.word, told.room, told.routes) == ("origin", "no_room", "", ())


@pytest.mark.parametrize(
    ("more", "events", "result", "word"),
    [
        ({"suspended": True}, (), "origin", "suspended"),
        ({"queue_all": True}, (), "waiting", "queue_all"),
        ({"queueing_method": "reject"}, (), "waiting", "reject"),
        ({"queueing_method": "passthrough"}, (), "origin", "passthrough"),
        ({"queueing_method": "passthrough", "queue_all": True}, (), "waiting", "queue_all"),
        ({}, (), "depends", "limits"),
        ({}, (event(queueing_method="reject"),), "waiting", "reject"),
        (
            {},
            (event(event_start_ms=NOW_MS + 60_000, prequeue_start_ms=NOW_MS - 600_000),),
            "waiting",
            "prequeue",
        ),
        (
            {},
            (
                event(
                    event_start_ms=NOW_MS + 60_000,
                    prequeue_start_ms=NOW_MS - 600_000,
                    suspended=True,
                ),
            ),
            "depends",
            "limits",
        ),
        ({"suspended": True}, (event(queueing_method="reject"),), "origin", "suspended"),
    ],
)
def test_the_verdict_follows_the_published_order(
    more: dict, events: tuple, result: str, word: str
) -> None:
    told = asked("https://shop.example/", RoomDefinition(room(**more), events))
    assert (told.result, told.word) == (result, word)
    assert told.reason.endswith(".")


def test_the_books_say_whether_there_is_a_place() -> None:
    plan = RoomDefinition(room())
    assert asked("https://shop.example/", plan, ledgers={"shop": Seats(3, 0)}).word == "limits"
    for full in (Seats(10, 0), Seats(3, 1)):
        told = asked("https://shop.example/", plan, ledgers={"shop": full})
        assert (told.result, told.word) == ("waiting", "full")
        assert f"{full.active} of 10 active, {full.waiting} waiting" in told.reason


def test_a_rule_beats_everything_and_each_says_what_it_made_of_the_request() -> None:
    rules = (
        Rule(id="1", expression="ssl", enabled=False),
        Rule(id="2", expression='http.host == "x"'),
        Rule(id="3", expression='http.user_agent contains "Mozilla"', description="browsers"),
        Rule(id="4", expression='ip.src.country == "DE"'),
    )
    told = asked("https://shop.example/", RoomDefinition(room(queue_all=True), (), rules))
    assert (told.result, told.word) == ("origin", "bypassed")
    assert told.reason == "Skips the line: matches bypass rule browsers."
    assert [rule.result for rule in told.rules] == [
        "switched off",
        "does not hold",
        "holds",
        "does not hold",
    ]
    suspended = asked("https://shop.example/", RoomDefinition(room(suspended=True), (), rules))
    assert suspended.rules == (), "nobody asks them there"


def test_settings_say_where_they_come_from() -> None:
    told = asked(
        "https://shop.example/",
        RoomDefinition(room(session_duration=7), (event(queueing_method="random"),)),
    )
    source = {setting.name: (setting.value, setting.source) for setting in told.settings}
    assert source["session_duration"] == (7, "room")
    assert source["queueing_method"] == ("random", "event")
    assert source["total_active_users"] == (10, "room")
    assert source["queue_all"] == (False, "default")
    assert told.event is not None
    assert (told.event.name, told.event.phase, told.event.until_ms) == (
        "sale",
        "running",
        NOW_MS + 3_600_000,
    )


@pytest.mark.parametrize(
    ("more", "headers", "answer"),
    [
        ({}, BROWSER, "status 200, the built-in page in en-US or the browser's language, which refreshes by itself, with a cookie"),
        ({"queueing_status_code": 429, "custom_page_html": "wait"}, BROWSER, "status 429, the custom page (4 characters), which refreshes by itself, with a cookie"),
        ({"json_response_enabled": True}, (("Accept", "application/json"),), "status 200, JSON, which refreshes by itself, with a cookie"),
        ({"follow_accept_language": True}, BROWSER, "status 200, the built-in page in en-US or the browser's language, which refreshes by itself, with a cookie"),
        ({"same_status_for_all": True}, (("Sec-Fetch-Dest", "image"),), "status 200, a short text, no page"),
        ({}, (("Sec-Fetch-Dest", "image"),), "status 503, a short text, no page"),
    ],
)  # fmt: skip
def test_what_the_visitor_would_get(more: dict, headers: tuple, answer: str) -> None:
    assert (
        asked(
            "https://shop.example/", RoomDefinition(room(queue_all=True, **more)), headers=headers
        ).answer
        == answer
    )


def test_a_head_is_explained_like_its_get() -> None:
    told = asked(
        "https://shop.example/", RoomDefinition(room(queue_all=True)), method="HEAD"
    ).answer
    assert told.endswith("which refreshes by itself, without a cookie; only its head")
    assert "the built-in page" in told


def test_a_reject_page_does_not_refresh() -> None:
    assert asked(
        "https://shop.example/", RoomDefinition(room(queueing_method="reject"))
    ).answer.endswith("which does not refresh")


def test_a_ticket_is_noted_but_not_judged() -> None:
    cookie = (("Cookie", "a=b; __cfwaitingroom=xyz"),)
    assert (
        "has a ticket"
        in asked("https://shop.example/", RoomDefinition(room()), headers=cookie).notes[0]
    )
    assert "new visitor" in asked("https://shop.example/", RoomDefinition(room())).notes[0]


@pytest.mark.parametrize(
    "url",
    ["https://shop.example/a\\b", "https://shop.example/%zz", "ftp://shop.example/", "//", "https:///x", "http://[::1/",
     "https://shop.example/%E4", "https://sho p.example/", "https://shop.example/\r\nX: y"],
)  # fmt: skip
def test_what_would_be_refused_is_told_as_that(url: str) -> None:
    told = explained(read_config(CONFIG), ExplainRequest(url), NOTHING_KNOWN, NOW_MS, {})
    assert (told.result, told.word) == ("refused", "malformed")
    assert told.reason.startswith("Status 4")


def test_the_host_header_counts_as_it_does_for_a_real_request() -> None:
    arrival = described_arrival(
        "http://127.0.0.1:8080/x", "GET", (("Host", "Shop.Example:8080"),), "192.0.2.7"
    )
    assert isinstance(arrival, Arrival)
    assert (arrival.host, arrival.path) == ("shop.example", "/x")


CONFIG = """
origin = "http://127.0.0.1:3000"
trusted_proxies = ["10.0.0.0/8"]
search_engine_crawler_bypass = true
[[lists]]
name = "office"
kind = "ip"
items = ["198.51.100.0/24"]
[[rooms]]
name = "shop"
host = "*.example.com"
total_active_users = 10
new_users_per_minute = 10
[[rooms.rules]]
expression = "ip.src in $office"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "greenroom.toml"
    path.write_text(f'data = "{tmp_path}/data"\n{CONFIG}')
    return path


def test_the_command_explains_a_file(file: Path) -> None:
    options = [
        "explain",
        "https://a.example.com/x",
        "--config",
        str(file),
        "--client",
        "10.1.1.1",
        "-H",
        "X-Forwarded-For: 198.51.100.9",
    ]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(
        "GET https://a.example.com/x   from 198.51.100.9\n\n  goes to the origin: Skips the line: matches bypass rule ip.src in $office"
    )
    assert "routes    + *.example.com/   room shop: the most specific matching route" in done.stdout
    assert (
        'rules     + holds: ip.src in $office\n            does not hold: cf.verified_bot_category == "Search Engine Crawler"'
        in done.stdout
    )
    told = json.loads(CliRunner().invoke(app, [*options, "--json"]).stdout)
    assert (told["result"], told["word"], told["room"], told["client"]) == (
        "origin",
        "bypassed",
        "shop",
        "198.51.100.9",
    )


def test_the_command_says_what_is_wrong(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GREENROOM_TOKEN", "CLOUDFLARE_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    wrong = {
        "cannot be used together": ["--config", str(file), "--control", "127.0.0.1:1"],
        "must be 'NAME: VALUE'": ["--config", str(file), "--header", "nothing"],
        "token": ["--control", "127.0.0.1:1"],
        "cannot ask 127.0.0.1:1": ["--control", "127.0.0.1:1", "--token", "x"],
    }
    for said, options in wrong.items():
        done = CliRunner().invoke(app, ["explain", "https://a.example.com/", *options])
        assert done.exit_code == 2
        assert said in done.stderr
    file.write_text("nonsense = 1")
    done = CliRunner().invoke(app, ["explain", "https://a.example.com/", "--config", str(file)])
    assert done.exit_code == 1
    assert "nonsense: unknown field" in done.stderr


def test_a_broken_list_is_an_error_of_the_configuration() -> None:
    with pytest.raises(InvalidConfig):
        read_config(CONFIG.replace("198.51.100.0/24", "nowhere"))
