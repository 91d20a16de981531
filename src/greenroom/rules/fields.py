"""Every field of bypass rules, one row each."""

from collections.abc import Callable
from typing import Any, NamedTuple

from greenroom.rules import reading
from greenroom.rules.reading import RequestFacts, once
from greenroom.rules.syntax import (
    BOOLEAN,
    INTEGER,
    IP,
    STRING,
    STRINGS,
    STRINGS_BY_NAME,
    ValueKind,
    as_bytes_text,
)


class FieldSpec(NamedTuple):
    """`entry` reads the values under one key without building the map; None is the missing
    value.
    """

    kind: ValueKind
    read: Callable[[RequestFacts], Any]
    help: str
    entry: Callable[[RequestFacts, str], Any] | None = None


def _place(attribute: str) -> Callable[[RequestFacts], Any]:
    return lambda facts: as_bytes_text(getattr(reading.place(facts), attribute))


def _names(pairs: Callable[[RequestFacts], reading.Pairs]) -> Callable[[RequestFacts], list[str]]:
    return lambda facts: [name for name, _ in pairs(facts)]


def _values(pairs: Callable[[RequestFacts], reading.Pairs]) -> Callable[[RequestFacts], list[str]]:
    return lambda facts: [value for _, value in pairs(facts)]


def _lists(
    name: str, pairs: Callable[[RequestFacts], reading.Pairs]
) -> Callable[[RequestFacts], reading.Lists]:
    return once(name, lambda facts: reading.lists_by_name(pairs(facts)))


_ARGUMENTS = "query arguments by name; names and values as sent (not decoded)"

FIELDS: dict[str, FieldSpec] = {
    "http.host": FieldSpec(
        STRING, lambda facts: facts.arrival.host, "host name, lower case, without port"
    ),
    "http.request.method": FieldSpec(
        STRING, lambda facts: facts.arrival.method, "HTTP method, upper case"
    ),
    "http.request.uri": FieldSpec(STRING, reading.uri, "path and query"),
    "http.request.uri.path": FieldSpec(
        STRING,
        lambda facts: facts.arrival.path,
        "canonical path, as matched; where a path has several readings, each reading in turn",
    ),
    "http.request.uri.path.extension": FieldSpec(
        STRING,
        lambda facts: reading.extension(facts.arrival.path),
        "file extension in lower case",
    ),
    "http.request.uri.query": FieldSpec(
        STRING, lambda facts: facts.arrival.query, "query without the question mark"
    ),
    "http.request.uri.args": FieldSpec(
        STRINGS_BY_NAME, _lists("args", reading.arguments), _ARGUMENTS
    ),
    "http.request.uri.args.names": FieldSpec(
        STRINGS, _names(reading.arguments), "names of the query arguments, in order"
    ),
    "http.request.uri.args.values": FieldSpec(
        STRINGS, _values(reading.arguments), "values of the query arguments, in order"
    ),
    "http.request.full_uri": FieldSpec(STRING, reading.full_uri, "scheme, host, path and query"),
    "raw.http.request.uri": FieldSpec(
        STRING, reading.raw_uri, "path and query as sent, before normalization"
    ),
    "raw.http.request.uri.path": FieldSpec(STRING, reading.raw_path, "path as sent"),
    "raw.http.request.uri.path.extension": FieldSpec(
        STRING,
        lambda facts: reading.extension(reading.raw_path(facts)),
        "file extension of the path as sent",
    ),
    "raw.http.request.uri.query": FieldSpec(STRING, reading.raw_query, "query as sent"),
    "raw.http.request.uri.args": FieldSpec(
        STRINGS_BY_NAME, _lists("raw args", reading.raw_arguments), _ARGUMENTS
    ),
    "raw.http.request.uri.args.names": FieldSpec(
        STRINGS, _names(reading.raw_arguments), "names of the query arguments as sent"
    ),
    "raw.http.request.uri.args.values": FieldSpec(
        STRINGS, _values(reading.raw_arguments), "values of the query arguments as sent"
    ),
    "raw.http.request.full_uri": FieldSpec(
        STRING, reading.raw_full_uri, "scheme and host, with path and query as sent"
    ),
    "http.request.headers": FieldSpec(
        STRINGS_BY_NAME,
        _lists("headers by name", reading.headers),
        "headers by name in LOWER CASE; values as sent",
        reading.header_values,
    ),
    "http.request.headers.names": FieldSpec(
        STRINGS,
        once("header_names", reading.header_names),
        "header names in order, as HTTP/1.1 sent them; lower case elsewhere",
    ),
    "http.request.headers.values": FieldSpec(
        STRINGS, _values(reading.headers), "header values in order"
    ),
    "http.request.headers.truncated": FieldSpec(
        BOOLEAN,
        lambda _: False,
        "always false: a request with too many headers is refused, never truncated",
    ),
    "http.request.cookies": FieldSpec(
        STRINGS_BY_NAME,
        once("cookies", reading.cookies),
        "cookies by percent-decoded name; values as sent",
    ),
    "http.cookie": FieldSpec(STRING, reading.cookie_header, "the whole Cookie header"),
    "http.referer": FieldSpec(STRING, reading.header(b"referer"), "the Referer header"),
    "http.user_agent": FieldSpec(STRING, reading.user_agent, "the User-Agent header"),
    "http.x_forwarded_for": FieldSpec(
        STRING, reading.header(b"x-forwarded-for"), "the X-Forwarded-For header as received"
    ),
    "http.request.version": FieldSpec(
        STRING,
        lambda facts: facts.arrival.version,
        "HTTP version of the visitor's request, such as HTTP/1.1",
    ),
    "http.request.timestamp.sec": FieldSpec(
        INTEGER, lambda facts: facts.now_ms // 1000, "time of arrival, Unix seconds"
    ),
    "http.request.timestamp.msec": FieldSpec(
        INTEGER, lambda facts: facts.now_ms % 1000, "millisecond of the arrival, 0 to 999"
    ),
    "http.request.accepted_languages": FieldSpec(
        STRINGS, once("languages", reading.languages), "accepted languages, best first"
    ),
    "ip.src": FieldSpec(IP, reading.client, "the visitor's address, after trusted proxies"),
    "ip.src.asnum": FieldSpec(
        INTEGER,
        lambda facts: reading.place(facts).as_number,
        "autonomous system number, 0 when unknown",
    ),
    "ip.src.country": FieldSpec(STRING, _place("country"), "country, ISO 3166-1 alpha-2"),
    "ip.src.continent": FieldSpec(STRING, _place("continent"), "AF AN AS EU NA OC SA"),
    "ip.src.region": FieldSpec(STRING, _place("region"), "name of the region"),
    "ip.src.region_code": FieldSpec(STRING, _place("region_code"), "code of the region"),
    "ip.src.city": FieldSpec(STRING, _place("city"), "city"),
    "ip.src.postal_code": FieldSpec(STRING, _place("postal_code"), "postal code"),
    "ip.src.metro_code": FieldSpec(STRING, _place("metro_code"), "metro code (United States)"),
    "ip.src.lat": FieldSpec(STRING, _place("latitude"), "latitude in degrees"),
    "ip.src.lon": FieldSpec(STRING, _place("longitude"), "longitude in degrees"),
    "ip.src.subdivision_1_iso_code": FieldSpec(
        STRING, _place("subdivision_1"), "first subdivision, such as GB-ENG"
    ),
    "ip.src.subdivision_2_iso_code": FieldSpec(
        STRING, _place("subdivision_2"), "second subdivision, such as GB-SWK"
    ),
    "ip.src.timezone.name": FieldSpec(
        STRING, _place("timezone"), "time zone, such as Europe/Berlin"
    ),
    "ip.src.is_in_european_union": FieldSpec(
        BOOLEAN,
        lambda facts: reading.place(facts).in_european_union,
        "whether the country belongs to the European Union",
    ),
    "ssl": FieldSpec(
        BOOLEAN,
        lambda facts: facts.arrival.scheme == "https",
        "whether the visitor's connection is encrypted",
    ),
    "cf.client.bot": FieldSpec(
        BOOLEAN,
        lambda facts: reading.crawler(facts) != "",
        "whether the client is a verified crawler",
    ),
    "cf.verified_bot_category": FieldSpec(
        STRING,
        lambda facts: as_bytes_text(reading.crawler(facts)),
        "category of the verified crawler",
    ),
    "cf.edge.server_ip": FieldSpec(
        IP, reading.listener_address, "address that received the request"
    ),
    "cf.edge.server_port": FieldSpec(
        INTEGER, reading.listener_port, "port that received the request"
    ),
    "cf.ray_id": FieldSpec(STRING, lambda facts: facts.arrival.ray_id, "request id"),
}

ALIASES = {
    f"ip.geoip.{name}": f"ip.src.{name}"
    for name in (
        "asnum",
        "country",
        "continent",
        "subdivision_1_iso_code",
        "subdivision_2_iso_code",
        "is_in_european_union",
    )
}

FIELDS.update(
    {old: FIELDS[new]._replace(help=f"deprecated name of {new}") for old, new in ALIASES.items()}
)

ABSENT = {
    "http.request.body.": "the body of a request is not read before admission",
    "http.request.jwt.": "tokens are not validated before admission",
    "http.response.": "a bypass rule is decided before there is a response",
    "raw.http.response.": "a bypass rule is decided before there is a response",
    "cf.response.": "a bypass rule is decided before there is a response",
    "cf.timings.": "a bypass rule is decided before there is a response",
    "cf.threat_score": "bypass rules may not read threat scores",
    "cf.bot_management.": "bypass rules may not read bot scores",
    "cf.tls_": "details of the visitor's TLS connection are not available",
    "cf.waf.": "there is no firewall in front of the waiting room",
    "cf.llm.": "there is no firewall in front of the waiting room",
    "cf.api_gateway.": "there is no API gateway in front of the waiting room",
    "cf.": "has no counterpart outside Cloudflare",
}
"""The longest match applies."""


def absent(name: str) -> str | None:
    """None: unknown name."""
    return next(
        (
            ABSENT[start]
            for start in sorted(ABSENT, key=len, reverse=True)
            if name.startswith(start)
        ),
        None,
    )
