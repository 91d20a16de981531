"""Zones: domains with their waiting rooms, and the settings that these share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import FormSpec, field_problems, spec, vars_of
from greenroom.model.room import SESSION_LONGEST, Room
from greenroom.model.route import HOST

ACCOUNT_ID = "67726565656e726f6f6d000000000001"

LIMIT_FLOOR = 200
"""As published by Cloudflare; a zone may lower it."""

SESSION_MAX = 30
"""As published by Cloudflare; a zone may raise it."""

PROXIES_MAX = 100

NO_ORIGIN = "http://origin.invalid"
"""A name without an address (RFC 6761): no other origin gets the requests of a zone with an unusable
origin.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Of the origin's URL only the length is checked here."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    account_id: str = spec("the account it belongs to", ACCOUNT_ID, low=1, high=32)
    name: str = spec(
        "domain name; rooms cover it and the hosts below it",
        example="example.com",
        low=1,
        high=253,
        pattern=HOST,
        pattern_words=(
            "be a domain name in lower case without scheme, port and path, such as example.com"
        ),
        form=FormSpec(
            "domain",
            "Domain",
            "What your visitors type, without https://. Rooms of the zone cover it and the hosts"
            " below it.",
        ),
    )
    paused: bool = spec(
        "true: no room of the zone holds visitors",
        False,
        form=FormSpec(
            "pause",
            "Pause all rooms of the zone",
            "Every visitor goes straight to your application.",
        ),
    )
    search_engine_crawler_bypass: bool = spec(
        "verified search-engine crawlers are neither held nor counted", False
    )
    origin: str = spec(
        "URL of the zone's application, `http://host[:port]` or `https://host[:port]`; empty: the"
        " origin of the process",
        "",
        high=2048,
        extension=True,
        form=FormSpec(
            "domain",
            "Your application",
            "Where greenroom sends visitors who are let in, such as http://127.0.0.1:3000. Leave"
            " blank to use the address in your configuration file.",
        ),
    )
    always_use_https: bool = spec(
        "visitors always use HTTPS: cookies marked `auto` become Secure and SameSite=None",
        False,
        extension=True,
        form=FormSpec(
            "visitors",
            "Visitors always use HTTPS",
            "Browsers then send the visitor's cookie over HTTPS only, also when a payment page sends"
            " the visitor back.",
        ),
    )
    trusted_proxies: tuple[str, ...] = spec(
        "addresses and networks whose forwarding headers are trusted, in addition to those of the"
        " process, for hosts of this zone",
        (),
        high=PROXIES_MAX,
        extension=True,
    )
    ambiguous_paths: str = spec(
        "paths that programs read in different ways (`%2F`, `%3B`, `;`, double encoding) and raw"
        " UTF-8: `auto` passes them on where every reading leads to the same room and rules, and"
        " refuses them with 400 elsewhere; `refuse`: always; `pass`: the room of any reading counts",
        "auto",
        choices=("auto", "refuse", "pass"),
        extension=True,
    )
    merge_slashes: bool | str = spec(
        "send `//` in a path to the origin as `/`; `auto`: only where both lead to different rooms"
        " or rules; false: as it came, and the room that covers either counts",
        "auto",
        choices=(False, True, "auto"),
        extension=True,
    )
    pass_well_known: bool = spec(
        "send /robots.txt and /.well-known/acme-challenge/ to the origin around every room, as a"
        " bypass rule of each room",
        True,
        extension=True,
    )
    limit_floor: int = spec(
        "least value of the two limits of a room",
        LIMIT_FLOOR,
        low=1,
        high=LIMIT_FLOOR,
        extension=True,
        form=FormSpec("limits", "Lowest allowed limit", "Rooms in this zone can't go below this."),
    )
    session_ceiling: int = spec(
        "longest session_duration of a room",
        SESSION_MAX,
        unit="minutes",
        low=SESSION_MAX,
        high=SESSION_LONGEST,
        extension=True,
        form=FormSpec(
            "limits", "Longest session", "Rooms in this zone can't have longer sessions."
        ),
    )
    case_insensitive_paths: bool = spec(
        "ignore case when matching path prefixes of every room",
        False,
        extension=True,
        form=FormSpec(
            "visitors",
            "Ignore case in paths",
            "/Sale and /sale are the same for every room.",
        ),
    )

    def __post_init__(self) -> None:
        problems = zone_problems(vars_of(self))
        if problems:
            raise InvalidConfig(problems)

    def covers(self, host: str) -> bool:
        return host == self.name or host.endswith(f".{self.name}")


def in_zone(room: Room, zone: Zone) -> Room:
    if zone.paused and not room.suspended:
        room = replace(room, suspended=True)
    if zone.case_insensitive_paths and not room.case_insensitive_paths:
        room = replace(room, case_insensitive_paths=True)
    return room


def zone_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = field_problems(Zone, values)
    proxies = values.get("trusted_proxies")
    for index, written in enumerate(proxies if isinstance(proxies, tuple) else ()):
        reason = _wrong(written) if isinstance(written, str) else ""  # else said already
        if reason:
            problems.append(Problem(f"trusted_proxies[{index}]", reason))
    return problems


def _wrong(network: str) -> str:
    try:
        ip_network(network)
    except ValueError as error:
        return f"must be an address or a network such as 10.0.0.0/8: {error}"
    return ""
