"""Countries, autonomous systems and crawlers through a real process: what the file says, and what
changes while it runs.
"""

import json
from pathlib import Path
from typing import Any

from mmdb_file import mmdb
from typer.testing import CliRunner

from greenroom.cli import app

ROOM = """
origin = "{origin}"
trusted_proxies = ["127.0.0.1"]
{top}
[[rooms]]
name = "shop"
host = "*"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
{rules}
{more}
"""


def config(origin: Any, *expressions: str, top: str = "", more: str = "") -> str:
    rules = "".join(
        f"\n[[rooms.rules]]\nexpression = '''{expression}'''\n" for expression in expressions
    )
    return ROOM.format(origin=origin.url, top=top, rules=rules, more=more)


def waits(running: Any, client: str, agent: str = "Mozilla/5.0") -> bool:
    return (
        running.visitor().get("/", headers={"X-Forwarded-For": client, "User-Agent": agent}).waiting
    )


def test_the_country_is_known_without_any_file(greenroom: Any, origin: Any) -> None:
    running = greenroom.config(
        config(origin, 'ip.src.country in {"DE" "AT"}', 'ip.src.continent == "OC"')
    )
    assert not waits(running, "217.0.43.49")
    assert waits(running, "8.8.8.8")
    assert waits(running, "10.1.2.3")


def test_a_database_says_cities_and_systems_and_is_taken_again_when_it_is_replaced(
    greenroom: Any, origin: Any
) -> None:
    city = {"city": {"names": {"en": "Basel"}}, "country": {"iso_code": "CH"}}
    (greenroom.folder / "city.mmdb").write_bytes(mmdb({"203.0.113.0/24": city}))
    (greenroom.folder / "asn.mmdb").write_bytes(
        mmdb({"198.51.100.0/24": {"autonomous_system_number": 64500}})
    )
    top = 'geo_database = "city.mmdb"\nasn_database = "asn.mmdb"'
    running = greenroom.config(
        config(origin, 'ip.src.city == "Basel"', "ip.src.asnum == 64500", top=top)
    )
    assert not waits(running, "203.0.113.9")
    assert not waits(running, "198.51.100.9")
    assert waits(running, "192.0.2.9")
    (greenroom.folder / "city.mmdb").write_bytes(mmdb({"192.0.2.0/24": city}))
    running.wait_until_printed("config_loaded")
    assert not waits(running, "192.0.2.9")
    assert waits(running, "203.0.113.9")
    (greenroom.folder / "city.mmdb").write_text("not any more")
    running.wait_until_printed("config_refused")
    assert not waits(running, "192.0.2.9"), "the last good one goes on"


def test_a_verified_crawler_is_let_by_and_an_impostor_is_not(greenroom: Any, origin: Any) -> None:
    (greenroom.folder / "bot.json").write_text(
        json.dumps({"prefixes": [{"ipv4Prefix": "203.0.113.0/24"}]})
    )
    crawler = (
        '[[crawlers]]\nname = "Testbot"\nuser_agents = ["testbot"]\nranges_file = "bot.json"\n'
    )
    running = greenroom.config(
        config(origin, top="search_engine_crawler_bypass = true", more=crawler)
    )
    assert not waits(running, "203.0.113.5", "Mozilla/5.0 (compatible; TestBot/1.0)")
    assert waits(running, "203.0.113.5"), "the address alone is not enough"
    assert waits(running, "192.0.2.5", "Mozilla/5.0 (compatible; TestBot/1.0)"), "nor is the name"
    assert waits(running, "192.0.2.5", "Mozilla/5.0 (compatible; Googlebot/2.1)")
    assert running.room("shop")["requests"] == {"bypassed": 1, "held": 3}


def test_crawlers_are_asked_for_by_name_behind_the_visitors_back(
    greenroom: Any, origin: Any
) -> None:
    own = '[[crawlers]]\nname = "Ownbot"\ncategory = "Ours"\nuser_agents = ["ownbot"]\ndomains = ["googlebot.com"]\n'
    running = greenroom.config(config(origin, 'cf.verified_bot_category == "Ours"', more=own))
    assert waits(running, "127.0.0.1", "OwnBot")
    assert waits(running, "127.0.0.1", "OwnBot"), (
        "this machine's own name is not below googlebot.com"
    )


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(
        'origin = "http://127.0.0.1:3000"\ngeo_database = "none.mmdb"\nasn_database = "greenroom.toml"\n'
        '[[crawlers]]\nname = "a"\nuser_agents = ["ab"]\n[[crawlers]]\nname = "b"\nuser_agents = ["bbb"]\nranges = ["10.0.0.1/8"]\n'
        '[[crawlers]]\nname = "b"\nuser_agents = ["bbb"]\nranges_file = "none.json"\n'
        '[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'
    )
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 1
    for said in (
        f"{file}:2: geo_database: cannot read",
        f"{file}:3: asn_database: {file} is not an .mmdb database",
        f"{file}:6: crawlers[0].user_agents[0]: must be text of at least 3 characters",
        f"{file}:4: crawlers[0]: needs domains, ranges or ranges_file",
        f"{file}:10: crawlers[1].ranges: '10.0.0.1/8': host part of address was not zero",
        f"{file}:14: crawlers[2].ranges_file: cannot read",
    ):
        assert said in done.stderr, done.stderr
