"""A walk over every row of ROUTES: roles, zones, foreign origins, CSRF tokens, hostile content and
broken input, headers.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from dashboard_rig import ORIGIN, DashboardRig, Visitor, dashboard_in

from greenroom.configuration import zones as zone_changes
from greenroom.configuration.store import SqlStore
from greenroom.dashboard.app import CSP, HEADERS
from greenroom.dashboard.assets import GZIP_LEAST
from greenroom.dashboard.navigation import NAVIGATION, ROOM_TABS
from greenroom.dashboard.routes import ROUTES
from greenroom.model.account import ROLES, Role, Token, secret_hash
from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.model.rule import RuleList
from greenroom.model.zone import Zone
from greenroom.web.pages.routing import PageRoute, RouteReach

VALUES = {
    "zone_id": "z1",
    "room_id": "r1",
    "event_id": "e1",
    "list_id": "l1",
    "check_id": "h1",
    "number": "1",
    "token_id": "t1",
    "policy_id": "p1",
    "rule_id": "r1-0",
    "session_id": "none",
    "note_id": "n1",
    "page_id": "sp1",
    "section": "howto",
    "document": "dashboard",
}
"""What stands for the values of paths: things that are there (config_material.one_of_each)."""

UNKNOWN = "f" * 32
FIRST_PAGE_MAX = 250_000


def path_of(row: PageRoute, **changes: str) -> str:
    known = {**VALUES, **changes}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: known.get(found[1], UNKNOWN), row.path)


def name_of(row: PageRoute) -> str:
    return f"{row.method} {row.path}"


every_row = pytest.mark.parametrize("row", ROUTES, ids=name_of)
with_role = [row for row in ROUTES if row.role is not None]
every_guarded_row = pytest.mark.parametrize("row", with_role, ids=name_of)
every_write = pytest.mark.parametrize(
    "row", [row for row in with_role if row.method == "POST"], ids=name_of
)
every_look = pytest.mark.parametrize(
    "row", [row for row in ROUTES if row.method == "GET"], ids=name_of
)
OF_VISITORS = ("/page/visitor", "/status-page/preview")
"""Ends the path of what is not the dashboard's own: the waiting page, as its author wrote it, and
the status page, in a sandbox.
"""
every_own_page = pytest.mark.parametrize(
    "row",
    [row for row in ROUTES if row.method == "GET" and not row.path.endswith(OF_VISITORS)],
    ids=name_of,
)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path_factory.mktemp("dashboard")) as found:
        found.fill()
        yield found


@pytest.fixture(scope="module")
def people(rig: DashboardRig) -> dict[str, Visitor]:
    """One of each role for everything, and those that have one zone."""
    everywhere = {role: rig.person(role) for role in ROLES}
    return everywhere | {
        f"{role} of {zone}": rig.person(role, zone) for role in ROLES[:2] for zone in ("z1", "z2")
    }


def revision(rig: DashboardRig) -> int:
    return rig.store.read().revision


def ask(
    visitor: Visitor, row: PageRoute, path: str, csrf: str = "", origin: str | None = ORIGIN
) -> tuple[int, str]:
    headers = {"Origin": origin} if origin else {}
    if row.method == "GET":
        answer = visitor.ask("GET", path)
    else:
        form = {"_csrf": csrf} if csrf else {}
        answer = visitor.rig.run(_sent(visitor, path, form, headers))
    return answer.status_code, answer.text


async def _sent(visitor: Visitor, path: str, form: dict, headers: dict):
    import httpx

    transport = httpx.ASGITransport(
        visitor.rig.app, raise_app_exceptions=False, client=("127.0.0.1", 1)
    )
    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, cookies=visitor.cookies
    ) as client:
        return await client.post(path, data=form, headers=headers)


def test_no_two_rows_are_the_same_and_every_write_is_a_post() -> None:
    assert len({(row.method, row.path) for row in ROUTES}) == len(ROUTES)
    assert {row.method for row in ROUTES} <= {"GET", "POST"}
    assert all((row.reach is RouteReach.ZONE) == ("{zone_id}" in row.path) for row in ROUTES)
    paths = {row.path for row in ROUTES if row.method == "GET"}
    assert {item.path for item in NAVIGATION} <= paths
    assert {f"/zones/{{zone_id}}/rooms/{{room_id}}{tab.path}" for tab in ROOM_TABS} <= paths


@every_guarded_row
def test_without_a_session_nothing_is_shown_or_done(rig: DashboardRig, row: PageRoute) -> None:
    before = revision(rig)
    status, text = ask(Visitor(rig), row, path_of(row), csrf="0" * 64)
    assert (status, text) == (303, "")
    assert revision(rig) == before


@every_guarded_row
def test_lower_roles_are_refused(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    before = revision(rig)
    for role in ROLES[: row.role]:
        visitor = people[role]
        status, _ = ask(visitor, row, path_of(row), visitor.csrf())
        assert status == 403, role
    assert revision(rig) == before


@every_guarded_row
def test_people_with_single_zones_see_and_change_those_only(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    before = revision(rig)
    other = rig.person(
        ROLES[min(row.role or 0, 1)], "z2"
    )  # a session of its own: the walk signs out too
    status, text = ask(other, row, path_of(row), other.csrf())
    if row.reach is RouteReach.ZONE:
        assert status == (403 if row.role and row.role > Role.OPERATOR else 404)
    elif row.reach is RouteReach.WHOLE:
        assert status == 403
    assert "z1.example" not in text
    if row.reach is not RouteReach.FILTERED:
        assert revision(rig) == before


@pytest.mark.parametrize("row", [row for row in with_role if "{room_id}" in row.path], ids=name_of)
def test_a_room_is_only_found_in_its_own_zone(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    before = revision(rig)
    for visitor, zone, room in (
        (people["admin"], "z1", "r2"),
        (people["operator of z2"], "z2", "r1"),
    ):
        assert ask(visitor, row, path_of(row, zone_id=zone, room_id=room), visitor.csrf())[0] == 404
    assert revision(rig) == before


@every_write
@pytest.mark.parametrize(
    ("csrf", "origin"),
    [
        ("", ORIGIN),
        ("0" * 64, ORIGIN),
        ("own", "https://evil.example"),
        ("own", "null"),
        ("own", None),
        ("own", "http://testserver.evil.example"),
    ],
    ids=["no token", "wrong token", "another site", "no site", "no origin", "a longer name"],
)
def test_writes_need_the_session_s_token_and_our_own_origin(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute, csrf: str, origin: str | None
) -> None:
    before = revision(rig)
    visitor = people["admin"]
    status, _ = ask(visitor, row, path_of(row), visitor.csrf() if csrf == "own" else csrf, origin)
    assert status == 403
    assert revision(rig) == before


@every_guarded_row
def test_unknown_and_hostile_values_of_paths_are_answered_with_care(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    visitor = people["admin"]
    for value in (UNKNOWN, "..", "%00", "<script>", "a" * 3000, "٣", "%E2%80%AE"):
        for name in re.findall(r"\{(\w+)", row.path):
            path = path_of(row, **{name: value if "%" in value or value == ".." else quote(value)})
            status, text = ask(visitor, row, path, visitor.csrf())
            assert status < 500, value
            assert "<script>" not in text


@every_look
def test_hostile_queries_are_answered_with_care(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    hostile = quote("\"'><script>alert(1)</script>")
    names = {
        "q",
        "zone",
        "state",
        "sort",
        "page",
        "next",
        "key",
        "before",
        "notice",
        "from",
        "to",
        "host",
        "url",
        "type",
        "id",
    }
    for value in (hostile, "99999999999999999999999", "-1", "%00", "%FF", "a" * 4000):
        query = "&".join(f"{name}={value}" for name in sorted(names))
        answer = people["admin"].ask("GET", f"{path_of(row)}?{query}")
        assert answer.status_code < 500
        assert "<script>alert" not in answer.text


@every_write
def test_broken_forms_are_answered_with_care(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    visitor = people["admin"]
    csrf = visitor.csrf()
    for body in (
        b"\xff\xfe=1",
        b"a=%FF",
        b"a=%00",
        b"&".join(b"a=1" for _ in range(6_000)),
        b"revision=x&step=save&typed=<script>",
    ):
        answer = visitor.rig.run(_raw(visitor, path_of(row), body, csrf))
        assert answer.status_code < 500, body[:20]


async def _raw(visitor: Visitor, path: str, body: bytes, csrf: str):
    import httpx

    headers = {
        "Origin": ORIGIN,
        "X-CSRF-Token": csrf,
        "Content-Type": "application/x-www-form-urlencoded",
    }
    transport = httpx.ASGITransport(
        visitor.rig.app, raise_app_exceptions=False, client=("127.0.0.1", 1)
    )
    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, cookies=visitor.cookies
    ) as client:
        return await client.post(path, content=body, headers=headers)


@every_own_page
def test_every_page_has_the_headers_and_nothing_inline(
    rig: DashboardRig, people: dict[str, Visitor], row: PageRoute
) -> None:
    answer = people["admin"].ask("GET", path_of(row))
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert answer.headers["cache-control"] == "no-store"
    text = answer.text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<[^>]*\s(style|on[a-z]+)\s*=", text)
    assert not re.search(r"""(src|href|action|hx-get|hx-post)="(https?:)?//""", text)
    for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", text, re.S):
        assert 'name="_csrf"' in form or row.role is None


@pytest.mark.parametrize("path", ["page/visitor", "page/preview"])
def test_the_page_of_visitors_has_none_of_the_dashboard_s_rights(
    hostile: DashboardRig, path: str
) -> None:
    visitor = hostile.person("admin")
    where = f"/zones/z3/rooms/r3/{path}"
    form = {"own": "true", "custom_page_html": HOSTILE_PAGE, "default_template_language": "en-US"}
    answer = visitor.get(where) if path.endswith("visitor") else visitor.post(where, **form)
    assert "<script>alert(2)</script>" in answer.text
    policy = [part.strip() for part in answer.headers["content-security-policy"].split(";")]
    assert policy == ["sandbox allow-scripts", "frame-ancestors 'self'"]
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    for name in (
        "X-Content-Type-Options",
        "Cross-Origin-Opener-Policy",
        "Cross-Origin-Resource-Policy",
        "Permissions-Policy",
    ):
        assert answer.headers[name] == HEADERS[name]
    assert answer.headers["cache-control"] == "no-store"


def test_the_policy_allows_nothing_inline_and_no_other_place() -> None:
    assert "unsafe" not in CSP
    assert "http" not in CSP
    assert "frame-ancestors 'none'" in CSP
    assert "base-uri 'none'" in CSP


HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}${7*7}"

HOSTILE_PAGE = f"<p>{HOSTILE.replace('{{7*7}}', '')}</p>"
"""A template without a fault: it is used as it is."""


def hostile_records() -> list[tuple[object, str]]:
    """Every stored text that can hold more than letters, in its record."""
    return [
        (Zone(id="z3", name="z3.example", limit_floor=1), ""),
        (
            Room(
                id="r3",
                name="r3",
                host="z3.example",
                total_active_users=5,
                new_users_per_minute=5,
                description=HOSTILE,
                custom_page_html=HOSTILE_PAGE,
                cookie_suffix="r3",
            ),
            "z3",
        ),
        (
            Event(
                id="e3",
                name="e3",
                event_start_ms=1_800_000_000_000,
                event_end_ms=1_800_003_600_000,
                description=HOSTILE,
            ),
            "r3",
        ),
        (RuleList(id="l3", name="l3", kind="ip", description=HOSTILE), ""),
        (Token(id="t3", name=HOSTILE, scopes=("read",), secret_sha256=secret_hash("y")), ""),
    ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path_factory.mktemp("hostile")) as found:
        found.fill()
        found.put(*hostile_records())
        found.config.change(
            HOSTILE,
            zone_changes.edit(
                "z3",
                {"paused": False, "greenroom": {"origin": "http://127.0.0.1:1"}},
                lambda *_: [],
            ),
        )
        yield found


@every_own_page
def test_stored_texts_are_never_markup(hostile: DashboardRig, row: PageRoute) -> None:
    visitor = hostile.person("admin")
    visitor.cookies |= {
        "greenroom_theme": HOSTILE.replace('"', ""),
        "greenroom_tz": "../../etc/passwd",
    }
    answer = visitor.ask(
        "GET", path_of(row, zone_id="z3", room_id="r3", event_id="e3", list_id="l3", token_id="t3")
    )
    if answer.headers.get("content-type", "").startswith("application/json"):
        return  # browsers never read it as markup: nosniff is set on every answer
    text = answer.text
    assert "<img src=x" not in text
    assert "<script>alert" not in text
    assert "49" not in re.findall(r"onerror=alert\(1\).{0,60}", html.unescape(text))


def test_hostile_texts_are_really_on_some_pages(hostile: DashboardRig) -> None:
    visitor = hostile.person("admin")
    for path in ("/zones/z3/rooms/r3/edit", "/tokens", "/audit"):
        assert "&lt;script&gt;alert(2)" in visitor.get(path).text


def test_a_forged_host_changes_nothing_on_a_page(
    rig: DashboardRig, people: dict[str, Visitor]
) -> None:
    visitor = people["admin"]
    answer = visitor.get(
        "/rooms",
        Host="evil.example",
        **{"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"},
    )
    assert "evil" not in answer.text
    assert "evil" not in str(answer.headers)


def test_static_files_are_kept_for_ever_and_sent_compressed(rig: DashboardRig) -> None:
    page = Visitor(rig).get("/sign-in").text
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(files) >= 3
    size = len(page)
    for file in files:
        answer = Visitor(rig).ask("GET", file, headers={"Accept-Encoding": "br, gzip"})
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert (
            answer.headers.get("content-encoding") in ("br", "gzip")
            or len(answer.content) < GZIP_LEAST
        )
        size += int(answer.headers["content-length"])
        plain = Visitor(rig).ask("GET", file, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
    assert size <= FIRST_PAGE_MAX
    assert Visitor(rig).ask("GET", "/static/../app.py").status_code == 404
    assert Visitor(rig).ask("GET", "/static/%2e%2e%2fapp.py").status_code == 404


def test_browsers_find_an_icon_with_a_page_and_without_one(rig: DashboardRig) -> None:
    named = re.search(r'<link rel="icon"[^>]+href="([^"]+)"', Visitor(rig).get("/sign-in").text)
    assert named
    for path in (named[1], "/favicon.ico"):
        answer = Visitor(rig).get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
        assert answer.text.startswith("<svg")


def test_a_store_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    with dashboard_in(tmp_path) as broken:
        visitor = broken.person("admin")
        broken.store.close()
        folder = tmp_path / "a-file"
        folder.mkdir()
        broken.config.store = SqlStore(f"sqlite:///{folder}/config.db")
        (folder / "config.db").mkdir()  # nothing can be opened there
        answer = visitor.get("/rooms")
        assert answer.status_code in (500, 503)
        assert "Traceback" not in answer.text
