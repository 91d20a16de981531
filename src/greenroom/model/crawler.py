"""Crawlers that can bypass rooms, and how their operators let others verify them."""

from dataclasses import dataclass

from greenroom.model.fields import spec

CRAWLERS_MAX = 200

SEARCH = "Search Engine Crawler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawler:
    """Verified by an address in `ranges`, or by a name under `domains` that leads back to the
    address.
    """

    name: str = spec(
        "unique name; it replaces a built-in crawler of the same name",
        low=1,
        high=100,
        one_line=True,
    )
    category: str = spec("value of `cf.verified_bot_category`", SEARCH, low=1, high=100)
    user_agents: tuple[str, ...] = spec(
        "texts, one of which occurs in its User-Agent; case is ignored", high=50
    )
    domains: tuple[str, ...] = spec("domains of the host names of its addresses", (), high=50)
    ranges: tuple[str, ...] = spec(
        "addresses and networks published by its operator", (), high=10_000
    )
    ranges_file: str = spec(
        "file with the networks published by its operator, as JSON (`prefixes` with `ipv4Prefix`"
        " and `ipv6Prefix`) or one to a line",
        "",
        high=4096,
    )


def _named(name: str, user_agents: str, domains: str) -> Crawler:
    return Crawler(
        name=name, user_agents=tuple(user_agents.split()), domains=tuple(domains.split())
    )


CRAWLERS = (
    _named(
        "Googlebot",
        "googlebot google-inspectiontool storebot-google googleother",
        "googlebot.com google.com",
    ),
    _named("Bingbot", "bingbot msnbot adidxbot", "search.msn.com"),
    _named("Yahoo Slurp", "slurp", "crawl.yahoo.net"),
    _named("YandexBot", "yandex", "yandex.ru yandex.net yandex.com"),
    _named("Baiduspider", "baiduspider", "baidu.com baidu.jp"),
    _named("Applebot", "applebot", "applebot.apple.com"),
    _named("SeznamBot", "seznambot", "seznam.cz"),
    _named("Yeti", "yeti/", "naver.com"),
    _named("Sogou", "sogou", "sogou.com"),
    _named("PetalBot", "petalbot", "petalsearch.com aspiegel.com"),
    _named("Qwantbot", "qwantbot qwantify", "qwant.com"),
)
