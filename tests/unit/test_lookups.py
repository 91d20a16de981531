"""Where addresses are, and which crawlers are real: never by what a request calls itself, never
while a visitor waits.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from mmdb_file import mmdb

from greenroom.lookups import Crawlers, LocalLookups, Places
from greenroom.lookups.confirmed_names import (
    BAD_FOR_MS,
    FAILED_FOR_MS,
    GOOD_FOR_MS,
    KNOWN_MAX,
    PENDING_MAX,
    UNDER_WAY_MAX,
    ConfirmedNames,
    Resolver,
)
from greenroom.lookups.crawlers import UnusableRanges, networks, read_ranges
from greenroom.lookups.places import CONTINENT_OF, EUROPEAN_UNION, UnusableDatabase, open_database
from greenroom.model.crawler import CRAWLERS, Crawler
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.rules import compile_bypass

LONDON = {
    "country": {"iso_code": "GB"},
    "continent": {"code": "EU"},
    "city": {"names": {"en": "London"}},
    "postal": {"code": "SE1"},
    "location": {
        "latitude": 51.5,
        "longitude": -0.125,
        "time_zone": "Europe/London",
        "metro_code": 7,
    },
    "subdivisions": [
        {"iso_code": "ENG", "names": {"en": "England"}},
        {"iso_code": "SWK", "names": {"en": "Southwark"}},
    ],
}
GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def database(path: Path, records: dict) -> Path:
    path.write_bytes(mmdb(records))
    return path


# Places


def test_without_any_file_the_country_is_known_and_what_follows_from_it() -> None:
    place = Places().place("217.0.43.49")
    assert (place.country, place.continent, place.in_european_union) == ("DE", "EU", True)
    assert Places().place("8.8.8.8").country == "US"
    assert Places().place("2001:4860:4860::8888").continent == "NA"
    for nowhere in ("10.0.0.1", "unix", "", "::1"):
        assert Places().place(nowhere) == Places().place("127.0.0.1")
        assert Places().place(nowhere).country == ""


def test_supplied_files_say_more_and_count_more(tmp_path: Path) -> None:
    geo = open_database(
        database(
            tmp_path / "city.mmdb",
            {"8.8.8.0/24": LONDON, "2001:db8::/32": {"country": {"iso_code": "CH"}}},
        )
    )
    systems = open_database(
        database(tmp_path / "asn.mmdb", {"8.8.8.0/24": {"autonomous_system_number": 15169}})
    )
    place = Places(geo, systems).place("8.8.8.8")
    assert (place.country, place.city, place.postal_code, place.metro_code) == (
        "GB",
        "London",
        "SE1",
        "7",
    )
    assert (place.subdivision_1, place.subdivision_2, place.region, place.region_code) == (
        "GB-ENG",
        "GB-SWK",
        "England",
        "ENG",
    )
    assert (place.latitude, place.longitude, place.timezone) == ("51.5", "-0.125", "Europe/London")
    assert (place.as_number, place.in_european_union) == (15169, False)
    assert Places(geo, systems).place("2001:db8::1").country == "CH"
    assert Places(geo).place("8.8.8.8").as_number == 0
    assert Places(geo, systems).place("9.9.9.9").as_number == 0


def test_a_database_of_another_shape_says_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    odd = {
        "1.0.0.0/8": ["a list"],
        "2.0.0.0/8": {"country": "DE", "city": {"names": []}},
        "3.0.0.0/8": {"autonomous_system_number": "x"},
    }
    places = Places(open_database(database(tmp_path / "odd.mmdb", odd)))
    for client in ("1.1.1.1", "2.2.2.2", "3.3.3.3"):
        assert places.place(client) == Places().place(client)


def test_a_database_is_read_once_until_it_changes_and_survives_being_overwritten(
    tmp_path: Path,
) -> None:
    path = database(tmp_path / "a.mmdb", {"8.8.8.0/24": LONDON})
    first = open_database(path)
    assert open_database(path) is first
    with path.open("r+b") as file:
        file.truncate(10)  # a mapped file would take the process with it now
    assert Places(first).place("8.8.8.8").city == "London"
    with pytest.raises(UnusableDatabase, match=re.escape(f"{path} is not an .mmdb database")):
        open_database(path)
    with pytest.raises(UnusableDatabase, match="No such file"):
        open_database(tmp_path / "none.mmdb")


def test_every_member_of_the_european_union_has_a_continent() -> None:
    assert len(EUROPEAN_UNION) == 27
    assert {country: CONTINENT_OF[country] for country in EUROPEAN_UNION} == dict.fromkeys(
        EUROPEAN_UNION, "EU"
    )
    assert len(CONTINENT_OF) == 250


# Names


class World:
    """A name system in which answers come when the test says so. `silent` names no one answers for."""

    def __init__(
        self, backwards: dict[str, str], forwards: dict[str, list[str]], silent: Sequence[str] = ()
    ) -> None:
        self._backwards, self._forwards, self.silent = backwards, forwards, set(silent)
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def backwards(self, address: str) -> str:
        self.asked.append(address)
        await self.gate.wait()
        if address in self.silent:
            raise OSError("nobody answers")
        return self._backwards.get(address, "")

    async def forwards(self, name: str) -> list[str]:
        return self._forwards.get(name, [])


HONEST = World(
    {"66.249.66.1": "crawl-66-249-66-1.GoogleBot.com."},
    {"crawl-66-249-66-1.googlebot.com": ["66.249.66.1"]},
)


class Time:
    now_ms = 1_000_000


async def settled(rounds: int = 20) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


def story(world: World, play) -> None:
    async def whole() -> None:
        names = ConfirmedNames(world, lambda: Time.now_ms)
        Time.now_ms = 1_000_000
        running = asyncio.create_task(names.run())
        try:
            await play(names)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(whole())


def test_the_first_request_does_not_wait_and_the_next_one_knows() -> None:
    async def play(names: ConfirmedNames) -> None:
        assert names.name_of("66.249.66.1") == ""
        await settled()
        assert names.name_of("66.249.66.1") == "crawl-66-249-66-1.googlebot.com"

    story(World(HONEST._backwards, HONEST._forwards), play)


def test_a_name_that_does_not_lead_back_is_no_name() -> None:
    world = World({"203.0.113.9": "crawl.googlebot.com"}, {"crawl.googlebot.com": ["66.249.66.1"]})

    async def play(names: ConfirmedNames) -> None:
        names.name_of("203.0.113.9")
        await settled()
        assert names.name_of("203.0.113.9") == ""
        assert world.asked == ["203.0.113.9"], "and is not asked for again at once"
        Time.now_ms += BAD_FOR_MS
        names.name_of("203.0.113.9")
        await settled()
        assert len(world.asked) == 2

    story(world, play)


def test_answers_age_and_silence_is_soon_asked_again() -> None:
    world = World(HONEST._backwards, HONEST._forwards, silent=["198.51.100.1"])

    async def play(names: ConfirmedNames) -> None:
        for address in ("66.249.66.1", "198.51.100.1"):
            names.name_of(address)
        await settled()
        assert names.name_of("66.249.66.1") != ""
        Time.now_ms += FAILED_FOR_MS
        names.name_of("198.51.100.1")
        await settled()
        assert world.asked.count("198.51.100.1") == 2
        Time.now_ms += GOOD_FOR_MS
        assert names.name_of("66.249.66.1") == "", "too old to be believed, and asked for again"
        await settled()
        assert names.name_of("66.249.66.1") != ""

    story(world, play)


def test_liars_fill_nothing_up() -> None:
    world = World(HONEST._backwards, HONEST._forwards)

    async def play(names: ConfirmedNames) -> None:
        world.gate.clear()
        for index in range(PENDING_MAX * 4):
            names.name_of(f"10.{index >> 8}.{index & 255}.1")
            names.name_of(f"10.{index >> 8}.{index & 255}.2")
        await settled()
        assert len(world.asked) == UNDER_WAY_MAX
        assert len(names._pending) <= PENDING_MAX
        assert len({address.rpartition(".")[0] for address in world.asked}) == UNDER_WAY_MAX, (
            "one question for each network"
        )
        world.gate.set()
        await settled(PENDING_MAX * 10)
        names.name_of("66.249.66.1")
        await settled()
        names._bad = {str(index): ("", 0) for index in range(KNOWN_MAX)}
        names.name_of("192.0.2.1")
        await settled()
        assert len(names._bad) == KNOWN_MAX
        assert names.name_of("66.249.66.1") != "", "bad answers push no good one out"

    story(world, play)


def test_the_systems_resolver_knows_this_machine() -> None:
    async def ask() -> None:
        resolver = Resolver()
        name = await resolver.backwards("127.0.0.1")
        assert name
        assert "127.0.0.1" in await resolver.forwards(name)

    asyncio.run(ask())


# Crawlers


def crawlers(*own: Crawler, name: str = "") -> Crawlers:
    return Crawlers(own, lambda _: name)


def test_a_crawler_must_say_so_and_be_so() -> None:
    assert (
        crawlers(name="crawl-1.googlebot.com").category("66.249.66.1", GOOGLE)
        == "Search Engine Crawler"
    )
    assert crawlers(name="").category("66.249.66.1", GOOGLE) == "", (
        "the User-Agent alone proves nothing"
    )
    assert crawlers(name="crawl-1.googlebot.com").category("66.249.66.1", "Mozilla/5.0") == ""
    assert crawlers(name="crawl.googlebot.com.example.net").category("66.249.66.1", GOOGLE) == ""
    assert crawlers(name="evilgooglebot.com").category("66.249.66.1", GOOGLE) == ""
    assert crawlers(name="msnbot-1.search.msn.com").category("66.249.66.1", GOOGLE) == "", (
        "another crawler's name"
    )


def test_who_claims_nothing_is_never_asked_about() -> None:
    asked: list[str] = []
    Crawlers((), lambda address: asked.append(address) or "").category(
        "192.0.2.1", "Mozilla/5.0 (X11; Linux) Firefox/140"
    )
    assert asked == []


def test_published_networks_need_no_question() -> None:
    duck = Crawler(
        name="DuckDuckBot",
        user_agents=("duckduckbot",),
        ranges=("20.191.45.212", "40.88.21.0/24", "2001:db8::/32"),
    )
    for client, found in (
        ("40.88.21.9", True),
        ("20.191.45.212", True),
        ("2001:db8::7", True),
        ("40.88.22.1", False),
        ("unix", False),
    ):
        assert bool(crawlers(duck).category(client, "DuckDuckBot/1.1")) is found


def test_an_operator_may_replace_what_is_built_in() -> None:
    own = Crawler(
        name="Googlebot",
        category="Feed Fetcher",
        user_agents=("GoogleBot",),
        ranges=("192.0.2.0/24",),
    )
    assert crawlers(own).category("192.0.2.1", GOOGLE) == "Feed Fetcher"
    assert crawlers(own, name="crawl-1.googlebot.com").category("66.249.66.1", GOOGLE) == ""


def test_networks_are_read_as_they_are_published(tmp_path: Path) -> None:
    file = tmp_path / "bot.json"
    file.write_text(
        json.dumps(
            {
                "creationTime": "now",
                "prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": "2001:db8::/32"}],
            }
        )
    )
    assert read_ranges(file) == ("192.0.2.0/24", "2001:db8::/32")
    file.write_text("# ours\n192.0.2.0/24\n\n2001:db8::1 # one\n")
    assert read_ranges(file) == ("192.0.2.0/24", "2001:db8::1")
    for wrong in ('{"prefixes": [{}]}', '{"prefixes": 3}', "{", '{"other": []}'):
        file.write_text(wrong)
        with pytest.raises(UnusableRanges):
            read_ranges(file)
    with pytest.raises(UnusableRanges, match="host part of address"):
        networks(["192.0.2.1/24"])


def test_every_built_in_crawler_can_be_verified() -> None:
    assert len({crawler.name for crawler in CRAWLERS}) == len(CRAWLERS)
    for crawler in CRAWLERS:
        assert crawler.domains
        assert all("." in domain and not domain.startswith(".") for domain in crawler.domains)
        assert all(word == word.lower() and len(word) > 3 for word in crawler.user_agents)


def test_rules_see_all_of_it() -> None:
    looked = LocalLookups(Places(), crawlers(name="crawl-1.googlebot.com"))
    visit = Arrival(
        "GET", "https", "a", "/", "", ((b"user-agent", GOOGLE.encode()),), "66.249.66.1"
    )
    for expression in (
        'cf.verified_bot_category == "Search Engine Crawler"',
        "cf.client.bot",
        'ip.src.country eq "US"',
        'ip.src.continent in {"NA"}',
    ):
        assert compile_bypass([Rule(expression=expression)])(visit, 0, looked), expression
