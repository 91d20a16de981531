"""Zones, rooms and all the rest, small and valid, for tests of everything that keeps or carries a
configuration.
"""

import sqlite3
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from greenroom.configuration.store import default_url
from greenroom.model.account import Account, Token, secret_hash
from greenroom.model.branding import Branding, LocalMessage
from greenroom.model.configuration import Configuration
from greenroom.model.event import Event
from greenroom.model.fields import SPEC, Spec
from greenroom.model.health_check import HealthCheck, HttpCheck, TcpCheck, effective
from greenroom.model.notification import (
    AlertPolicy,
    IncidentNote,
    PagerdutyService,
    Silence,
    Webhook,
)
from greenroom.model.offer import Offer, OfferSet
from greenroom.model.operation import Operation, RoomOperations
from greenroom.model.room import Room
from greenroom.model.route import CookieAttributes, Route
from greenroom.model.rule import ListItem, Rule, RuleList, RuleSet
from greenroom.model.status_page import StatusPage
from greenroom.model.zone import Zone

OLD_DATA = Path(__file__).resolve().parents[1] / "fixtures"
HOUR_MS = 3_600_000


def zone(id: str = "z1", name: str = "", **more) -> Zone:
    return Zone(id=id, name=name or f"{id}.example", **more)


def room(id: str = "r1", name: str = "", host: str = "", **more) -> Room:
    limits = {"total_active_users": 200, "new_users_per_minute": 200}
    return Room(id=id, name=name or id, host=host or f"{id}.z1.example", **{**limits, **more})


def event(id: str = "e1", start_ms: int = HOUR_MS, **more) -> Event:
    return Event(
        id=id,
        name=more.pop("name", id),
        event_start_ms=start_ms,
        event_end_ms=start_ms + HOUR_MS,
        **more,
    )


def rules(room_id: str = "r1", *expressions: str) -> RuleSet:
    return RuleSet(
        id=room_id,
        rules=tuple(
            Rule(id=f"{room_id}-{n}", expression=text) for n, text in enumerate(expressions)
        ),
    )


def other_values(record: type, *but: str) -> dict[str, Any]:
    """Values that are not the defaults, for every described field that is plain text, a number, a
    choice or true or false.
    """
    found: dict[str, Any] = {}
    for item in fields(record):
        rule: Spec | None = item.metadata.get(SPEC)
        if rule is None or item.default is MISSING or item.name in but:
            continue
        if rule.choices:
            found[item.name] = next(one for one in rule.choices if one != item.default)
        elif isinstance(item.default, bool):
            found[item.name] = not item.default
        elif isinstance(item.default, int):
            found[item.name] = item.default + 1
        elif isinstance(item.default, str):
            found[item.name] = rule.example or "x"
    return found


ALONE = {"native_pass", "line_table"}
"""Need other settings beside them: test_native_pass.py, test_line_table.py."""


def offers(room_id: str = "r1", available: str = "few") -> OfferSet:
    stalls = Offer(name="Stalls", price="€45 to €95", available=available, as_of_ms=5)
    return OfferSet(id=room_id, offers=(stalls,))


def full_room(id: str = "r1") -> Room:
    """A room in which nothing but ALONE has its default."""
    given: dict[str, Any] = {
        "path": "/shop",
        "additional_routes": (Route("b.z1.example", "/b"), Route("c.z1.example")),
        "cookie_suffix": id,
        "cookie_attributes": CookieAttributes("none", "always"),
        "enabled_origin_commands": ("revoke",),
        "custom_page_html": "<h1>{{waitTime}} — ünïcödé \0</h1>",
        "queueing_method": "random",
        "description": '"quoted"\n\ttext',
        "default_template_language": "ar-EG",
        "branding": Branding(
            site_name="Shop & Söhne",
            accent_color="#0B5fff",
            message="„Hallo“",
            help_url="https://help.example.com/",
        ),
        "branding_messages": (LocalMessage("de-DE", "Grüße"),),
        "cors_origins": ("https://www.example.com",),
        "priority_paths": ("/checkout",),
    }
    return room(id, **{**other_values(Room, "id", *ALONE), **given})


def health_check(id: str = "h1", **more) -> HealthCheck:
    return HealthCheck(**effective({"id": id, "name": id, "address": f"{id}.z1.example", **more}))


def full_health_check(id: str = "h1") -> HealthCheck:
    """A health check in which nothing has its default."""
    return health_check(
        id,
        type="HTTPS",
        description="the shop",
        interval=10,
        timeout=3,
        retries=1,
        consecutive_fails=2,
        consecutive_successes=3,
        suspended=True,
        check_regions=("WEU", "ENAM"),
        http_config=HttpCheck(
            method="GET",
            path="/health",
            port=8443,
            expected_codes=("200", "3xx"),
            expected_body="well",
            follow_redirects=True,
            allow_insecure=True,
            header={"Host": ("shop.z1.example",), "X-Two": ("a", "b")},
        ),
        tcp_config=TcpCheck(port=8080),
    )


def one_of_each() -> list[tuple[object, str]]:
    """(record, parent) of every kind, parents first."""
    return [
        (
            zone(
                "z1",
                origin="http://127.0.0.1:3000",
                trusted_proxies=("10.0.0.0/8", "::1"),
                limit_floor=1,
            ),
            "",
        ),
        (full_room("r1"), "z1"),
        (
            event("e1", session_duration=None, disable_session_renewal=False, prequeue_start_ms=1),
            "r1",
        ),
        (rules("r1", 'http.host eq "a"', "ip.src in $office"), "r1"),
        (offers("r1"), "r1"),
        (full_health_check("h1"), "z1"),
        (
            RoomOperations(
                id="r1",
                name="r1",
                operations=(
                    Operation(kind="hold", author="ada", start_ms=5),
                    Operation(
                        kind="message",
                        author="ada",
                        start_ms=5,
                        text="Soon",
                        texts=(LocalMessage("de-DE", "Bald"),),
                    ),
                ),
            ),
            "",
        ),
        (RuleList(id="l1", name="office", kind="ip"), ""),
        (ListItem(id="i1", value="192.0.2.0/24", comment="head office"), "l1"),
        (
            Token(
                id="t1",
                name="deploy",
                scopes=("read", "edit"),
                zone_ids=("z1",),
                secret_sha256=secret_hash("x"),
                expires_ms=5,
            ),
            "",
        ),
        (
            Webhook(
                id="w1",
                name="team",
                url="https://hooks.example.com/a",
                secret="k",
                shown_url="https://hooks.example.com/a",
            ),
            "",
        ),
        (PagerdutyService(id="d1", name="on call", routing_key="R1"), ""),
        (
            AlertPolicy(
                id="p1",
                name="p",
                alert_type="greenroom_event",
                emails=("a@b.example",),
                filters={"zones": ("z1",)},
            ),
            "",
        ),
        (
            Silence(
                id="s1", policy_id="p1", start_ms=1, end_ms=2, start_time="1970-01-01T00:00:00.001Z"
            ),
            "",
        ),
        (IncidentNote(id="n1", incident="x", text="We know.\n\nWe are on it.", at_ms=7), ""),
        (
            StatusPage(
                id="sp1",
                title="Shop status",
                host="status.example.com",
                rooms=("r1",),
                health_checks=("*",),
            ),
            "",
        ),
        (
            Account(
                id="a1", name="ada", role="operator", zone_ids=("z1",), password_hash="$argon2id$x"
            ),
            "",
        ),
    ]


def contents(configuration: Configuration) -> list[tuple[str, object, str]]:
    """(kind, record, parent) of everything."""
    return [(kind, entry.record, entry.parent) for kind, entry in configuration.entries()]


def old_database(version: str, folder: Path) -> str:
    """A database as the greenroom of that version left it."""
    connection = sqlite3.connect(folder / "config.db")
    connection.executescript((OLD_DATA / f"config_store_{version}.sql").read_text())
    connection.close()
    return default_url(folder)
