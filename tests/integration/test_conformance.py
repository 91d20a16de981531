"""The same requests through every integration: what the gateway does, but for the differences that
docs/reference/proxies.md lists.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conformance import NEVER_ENTERED, ROOMS, Row, Seen, rooms_toml, send, table
from integrations import INTEGRATIONS, Address, gateway, proxy

ROOT = Path(__file__).resolve().parents[2]
ROWS = table()


def played(address: Address, visitor_class: Any) -> dict[str, Seen]:
    """What each row gave, after one visitor has entered each room that can be entered."""
    inside = {}
    for room in ROOMS:
        visitor = visitor_class(address, f"{room}.example")
        answer = visitor.get("/a")
        assert answer.waiting == (room in ("closed", "later")), (room, answer.text)
        inside[room] = visitor.cookies.get("__cfwaitingroom", "")
    other = {room: inside["open" if room != "open" else "full"] for room in ROOMS}
    return {
        row.name: send(address, row, {"inside": inside[row.room], "other": other[row.room]})
        for row in ROWS
    }


@pytest.fixture(scope="module")
def expected() -> dict[str, Seen]:
    """What the gateway gives; filled by the first test."""
    return {}


CANONICAL = "not canonical: 400"
ITSELF = "refused by the server itself"
REPAIRED = "repaired before greenroom is asked"
RESOLVED = "resolved before greenroom is asked"
WHOLE = "whole addresses are read"
STAR = "OPTIONS * is answered by the server itself"
STATUS = "held with 429"
UNAVAILABLE = "held with 503"
DIFFERENCES: dict[str, set[str]] = {
    "nginx": {CANONICAL, ITSELF, WHOLE},
    "caddy": {CANONICAL, ITSELF, REPAIRED, STAR},
    "envoy": {CANONICAL, ITSELF, REPAIRED, STATUS, WHOLE},
    "haproxy": {ITSELF, REPAIRED},
    "haproxy-spoe": {CANONICAL, ITSELF, REPAIRED, WHOLE},
    "apache": {ITSELF, REPAIRED, STAR, WHOLE},
    "traefik": {ITSELF, REPAIRED, RESOLVED, STAR, UNAVAILABLE, WHOLE},
    "uvicorn": {CANONICAL, ITSELF, WHOLE},
    "gunicorn": {CANONICAL, ITSELF, WHOLE},
}
"""All that may differ, each of which does; docs/reference/proxies.md has the reasons."""

HELD_WITH = {429: STATUS, 503: UNAVAILABLE}
REFUSALS = frozenset((0, 400, 403, 404, 405, 411, 414, 421, 431, 501, 503, 505))


def difference(row: Row, wanted: Seen, found: Seen) -> str:
    """Which of the known differences this is; empty when there is none."""
    if found == wanted:
        return ""
    if "whole addresses" in row.name and found.status not in REFUSALS - {503}:
        served = not found.origin or (
            found.host in ("open.example", "asleep.example")
            and found.ticket == (found.host == "open.example")
        )
        return WHOLE if served else f"UNEXPLAINED: {found}"
    if row.odd and not found.origin and found.status in REFUSALS and not found.ticket:
        raw_utf_8 = r"\xc3\xa9" in row.name  # HAProxy refuses it
        refused = not wanted.origin and 400 <= wanted.status < 500
        return ITSELF if refused or raw_utf_8 else CANONICAL
    if (
        row.name.startswith("paths: b'*'")
        and not found.origin
        and found.status == 200
        and not found.form
    ):
        return STAR
    held = not found.origin and found.status in (200, *HELD_WITH) and found.form == "text/html"
    if row.name.startswith("head: ") and held:
        return REPAIRED
    form = found.form or wanted.form if row.method == "HEAD" else found.form
    if found.status in HELD_WITH and replace(found, status=wanted.status, form=form) == wanted:
        return HELD_WITH[found.status]
    if row.name.startswith("paths: ") and (
        held or found == Seen(True, 200, "application/json", False, "asleep.example")
    ):
        return RESOLVED
    return f"UNEXPLAINED: {wanted} became {found}"


def test_the_table_is_large_enough_and_names_each_row_once() -> None:
    assert len(ROWS) >= 200
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert set(NEVER_ENTERED) < set(ROOMS)


OVER_SOCKET_FILES = ("nginx", "haproxy-spoe")


@pytest.mark.parametrize(
    "name",
    ["gateway", *INTEGRATIONS, *(f"{name} over a Unix socket" for name in OVER_SOCKET_FILES)],
)
def test_every_integration_does_what_the_gateway_does(
    name: str,
    expected: dict[str, Seen],
    tmp_path: Path,
    greenroom: Any,
    origin: Any,
    visitor_class: Any,
) -> None:
    if not expected:
        (tmp_path / "gateway").mkdir()
        with gateway(name, tmp_path / "gateway", greenroom, origin.url, rooms_toml()) as address:
            expected.update(played(address, visitor_class))
    if name == "gateway":
        assert {seen.origin for seen in expected.values()} == {True, False}
        readable = {row.name for row in ROWS if expected[row.name].readable}
        assert readable == {
            "script of a listed origin in scripts with ticket none",
            "JSON of a listed origin in scripts with ticket none",
        }
        assert {
            row.name
            for row in ROWS
            if row.method == "OPTIONS" and row.room == "scripts" and expected[row.name].origin
        } == {"preflight in scripts with ticket none"}
        return
    name, over_file = name.partition(" ")[0], " " in name
    way = partial(proxy, socket_file=tmp_path / "decide.sock") if over_file else INTEGRATIONS[name]
    with way(name, tmp_path, greenroom, origin.url, rooms_toml()) as address:
        found = played(address, visitor_class)
    reasons: dict[str, list[str]] = {}
    for row in ROWS:
        reason = difference(row, expected[row.name], found[row.name])
        if reason:
            reasons.setdefault(reason, []).append(row.name)
    assert {
        reason: rows for reason, rows in reasons.items() if reason not in DIFFERENCES[name]
    } == {}
    assert set(reasons) == DIFFERENCES[name], "what is listed really differs"


def test_the_reference_lists_every_difference() -> None:
    lines = (ROOT / "docs/reference/proxies.md").read_text().splitlines()
    listed = {line.split("|")[1].strip(): line for line in lines if line.count("|") > 3}
    columns = [cell.strip() for cell in listed["difference"].split("|")]
    for name, reasons in DIFFERENCES.items():
        at = next(
            index
            for index, cell in enumerate(columns)
            if name == cell.lower().replace(", ", "-").partition(" (")[0]
        )
        found = {
            reason
            for reason in {CANONICAL, ITSELF, REPAIRED, RESOLVED, WHOLE, STAR, *HELD_WITH.values()}
            if listed[reason].split("|")[at].strip() == "yes"
        }
        assert found == reasons, name
