"""The parts under the pages: what settings mean, the state of a room in a word, forms, numbers and
times, assets, proxies.
"""

import asyncio
import gzip
from collections import Counter
from importlib import resources
from ipaddress import ip_network
from pathlib import Path

import pytest
from config_material import event, room, zone

from greenroom.admission.schedule import Effective, Phase
from greenroom.configuration import rooms
from greenroom.configuration.state import RoomState
from greenroom.dashboard.assets import Assets
from greenroom.dashboard.pages.room_meaning import example_words, has_example, meaning
from greenroom.dashboard.pages.rooms import LABELS, worded
from greenroom.dashboard.parts import ExampleWait
from greenroom.dashboard.room_live import room_live
from greenroom.dashboard.slices import PACKAGES
from greenroom.decision.room_view import Figures
from greenroom.model.configuration import Configuration, Entry
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.runtime.rebinding import BehindProxy
from greenroom.web.pages import rendering
from greenroom.web.pages.forms import Faults, document_of, field_of, field_view, flat
from greenroom.web.pages.rendering import Viewer, duration, grouped, local_time, share
from greenroom.web.refusals import ApiFault, Code

KNOWN = Configuration().changed(
    1,
    [
        Entry(zone("z1"), "", 0, 0, 1),
        Entry(room("r1"), "z1", 0, 0, 1),
        Entry(event("e1", 10_000), "r1", 0, 0, 1),
    ],
)


NOTHING = Figures()


def state(figures: Figures = NOTHING, now: Effective | None = None, **settings) -> RoomState:
    return RoomState(room("r1", **settings), figures, {}, now)


@pytest.mark.parametrize(
    ("found", "settings", "word"),
    [
        (None, {}, "open"),
        (state(Figures(waiting=3)), {}, "queueing"),
        (state(Figures(waiting=3, storage_failed=True)), {"queue_all": True}, "storage"),
        (state(Figures(waiting=3)), {"suspended": True}, "suspended"),
        (state(now=Effective(room("r1"), Phase.PREQUEUE)), {}, "prequeue"),
        (state(now=Effective(room("r1", queue_all=True))), {}, "holding"),
        (None, {"queueing_method": "reject"}, "rejecting"),
        (None, {"queueing_method": "passthrough"}, "passthrough"),
        (state(now=Effective(room("r1"), origin_down=True)), {}, "origin"),
    ],
)
def test_a_room_is_told_by_what_matters_most(
    found: RoomState | None, settings: dict, word: str
) -> None:
    entry = Entry(room("r1", **settings), "z1", 0, 0, 1)
    assert room_live(KNOWN.changed(2, [entry]), entry, found, 0).word == word


def test_rooms_of_a_paused_zone_are_suspended() -> None:
    paused = KNOWN.changed(2, [Entry(zone("z1", paused=True), "", 0, 0, 2)])
    assert room_live(paused, KNOWN.rooms["r1"], state(Figures(waiting=1)), 0).word == "suspended"


def test_the_example_of_the_issue_is_told_in_words() -> None:
    shown = {
        "total_active_users": 500,
        "new_users_per_minute": 400,
        "session_duration": 5,
        "queueing_method": "fifo",
    }
    said = " ".join(meaning(shown, grouped))
    assert (
        "At most 500 people are in your application at once, and at most 400 are let in during any minute."
        in said
    )
    assert "Visitors keep their place on the site for 5 minutes after their last click." in said
    assert "suspended" in meaning({**shown, "suspended": True}, grouped)[0]
    assert has_example(shown)
    assert not any(
        has_example({**shown, **change})
        for change in ({"suspended": True}, {"queue_all": True}, {"queueing_method": "reject"})
    )


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"wait_s": 1_043.0}, "minutes, the last waits about 17 minutes."),
        ({"wait_s": 20.0}, "no one waits for more than a minute."),
        ({"wait_s": 9_000.0}, "the last waits about 2 h 30 min."),
        ({"wait_s": 9_000.0, "least": True}, "the last would wait for more than 2 h 30 min."),
        ({"wait_s": 9e6}, "the last would wait for more than 2 days."),
        ({}, "the longest wait is not known."),
        ({"ended": False}, "Simulating the wait for 10,000 people…"),
    ],
)
def test_the_example_is_as_exact_as_it_is_known(found: dict, told: str) -> None:
    text = example_words(ExampleWait(10_000, 10, 120.0, **{"ended": True, **found}), grouped)
    crowd = "With 10,000 people arriving within 10 minutes, each staying 2 minutes"
    assert text.startswith(crowd) or found == {"ended": False}
    assert text.endswith(told)


def test_faults_are_shown_beside_their_fields_and_the_rest_above() -> None:
    faults = Faults(
        [
            ApiFault(Code.INVALID, "host: is wrong", "/host"),
            ApiFault(Code.COVERED, "is covered", "/additional_routes/0"),
        ]
    )
    assert faults.take("host") == ("is wrong",)
    assert faults.general == ["Additional routes: is covered"]
    assert [field_of(text) for text in ("", "/greenroom/limit_floor", "/a/0/b")] == [
        "",
        "limit_floor",
        "a",
    ]


def test_faults_name_other_fields_as_the_form_does() -> None:
    fault = ApiFault(
        Code.INVALID,
        "new_users_per_minute: must be at most total_active_users, 321",
        "/new_users_per_minute",
    )
    assert Faults([fault], LABELS).take("new_users_per_minute") == (
        "Can't be higher than Active visitors at once (321).",
    )
    assert Faults([fault]).take("new_users_per_minute") == (
        "must be at most “total active users”, 321",
    )


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "must have only letters (a to z, A to Z), digits, - and _, not 'Autumn sale'",
            "Use letters, numbers, hyphens and underscores. How about Autumn-sale?",
        ),
        (
            "must have only letters (a to z, A to Z), digits, - and _, not '!'",
            "Use letters, numbers, hyphens and underscores.",
        ),
        (
            "must be a domain name in lower case without scheme, port and path, such as"
            " example.com, not 'https://…'",
            "Enter just the domain, like example.com.",
        ),
        (
            "must be http://host[:port] or https://host[:port], not '127.0.0.1:43635'",
            "Start the address with http:// or https://.",
        ),
        (
            "must be at most 30 minutes, not 45 (greenroom.session_ceiling of the zone)",
            "This zone allows sessions of up to 30 minutes.",
        ),
        ("port 35301 is not allowed; allowed: 443, 80", "Use port 443 or 80."),
        ("must be given together with total_active_users", "Set both limits, or leave both blank."),
        ("must be at least 1, not 0", "must be at least 1, not 0"),
    ],
)
def test_a_form_says_what_to_do(message: str, told: str) -> None:
    fault = ApiFault(Code.INVALID, f"name: {message}", "/name")
    assert Faults([fault]).take("name") == (told,)


def test_a_room_is_shown_with_the_units_of_its_numbers() -> None:
    shown = flat(rooms.show(KNOWN, KNOWN.rooms["r1"], 0))
    assert worded(shown | {"session_duration": 5})["session_duration"] == "5 minutes"
    assert worded(shown | {"session_duration": 1})["session_duration"] == "1 minute"
    assert worded(shown)["refresh_max_seconds"] == "20 seconds"
    assert worded(shown)["queueing_method"] == "First come, first served"
    assert worded(shown)["total_active_users"] == shown["total_active_users"]


def test_a_form_gives_back_what_it_showed() -> None:
    names = [
        "name",
        "path",
        "total_active_users",
        "queue_all",
        "queueing_method",
        "pace_admissions",
        "refresh_max_seconds",
    ]
    shown = flat(rooms.show(KNOWN, KNOWN.rooms["r1"], 0))
    views = [field_view(rooms.ROOM, name, shown[name], Faults()) for name in names]
    assert [one.kind for one in views] == [
        "text",
        "text",
        "number",
        "checkbox",
        "select",
        "checkbox",
        "number",
    ]
    sent = {one.name: [str(one.value)] for one in views if one.kind != "checkbox" or one.value}
    assert flat(document_of(rooms.ROOM, names, sent)) == {name: shown[name] for name in names}
    wrong = document_of(rooms.ROOM, ["total_active_users"], {"total_active_users": ["1e9"]})
    assert wrong == {"total_active_users": "1e9"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (89, "89 seconds"),
        (90, "2 minutes"),
        (3_600, "60 minutes"),
        (7_300, "2 h 2 min"),
        (172_740, "47 h 59 min"),
        (172_800, "2 days"),
        (126_000_000, "1458 days"),
        (float("inf"), "unknown"),
    ],
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_numbers_and_times_are_written_as_the_viewer_reads_them() -> None:
    assert [grouped(1_234_567, language) for language in ("en", "de", "fr")] == [
        "1,234,567",
        "1.234.567",
        "1\u202f234\u202f567",
    ]
    assert grouped(float("nan")) == "unknown"
    assert local_time(1_700_000_000_000, "Asia/Tokyo") == "2023-11-15 07:13 JST"
    assert local_time(0, "nowhere") == "1970-01-01 00:00 UTC"
    assert [share(0, 0), share(5, 10), share(30, 10)] == [0, 50, 100]


@pytest.mark.parametrize("text", ["", "../../etc/passwd", "Europe/Nowhere", "\0", "A" * 5_000])
def test_unknown_time_zones_and_themes_fall_back(text: str) -> None:
    assert Viewer.of({}, {"greenroom_tz": text, "greenroom_theme": text}) == Viewer(
        "auto", "UTC", "en"
    )
    assert Viewer.of(
        {"accept-language": "de-AT"}, {"greenroom_tz": "Europe%2FVienna", "greenroom_theme": "dark"}
    ) == Viewer("dark", "Europe/Vienna", "de")


def test_assets_have_the_hash_of_their_content_in_their_names(tmp_path: Path) -> None:
    own, fetched = tmp_path / "own", tmp_path / "fetched"
    for folder in (own, fetched):
        folder.mkdir()
    (own / "a.css").write_text("x" * 1_000)
    (fetched / "a.css").write_text("never: the own file comes first")
    (fetched / "b.js").write_text("y")
    (fetched / "b.js.br").write_bytes(b"packed")
    (fetched / "notes.txt").write_text("not served")
    assets = Assets((own, fetched, tmp_path / "missing"))
    assert [assets.has(name) for name in ("a.css", "b.js", "b.js.br", "notes.txt", "c.js")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    first = assets.get(assets.name("a.css"))
    assert first is not None
    assert gzip.decompress(dict(first.encodings)["gzip"]) == b"x" * 1_000
    assert assets.get(assets.name("b.js")) == assets.get(assets.name("b.js"))
    assert assets.get("a.css") is None
    before = assets.name("a.css")
    (own / "a.css").write_text("changed")
    assert Assets((own,)).name("a.css") != before


def passed_on(peer: str, headers: dict[str, str]) -> dict:
    """The scope behind the middleware, for a request from this peer; 10.0.0.1 is trusted."""
    seen: dict = {}

    async def app(scope, receive, send) -> None:
        seen.update(scope)

    scope = {
        "type": "http",
        "client": (peer, 1),
        "headers": [
            (b"host", b"inside:8081"),
            *((k.encode(), v.encode()) for k, v in headers.items()),
        ],
    }
    policy = ForwardedPolicy([ip_network("10.0.0.1")])
    asyncio.run(BehindProxy(app, lambda: policy, "prefix")(scope, None, None))  # type: ignore[arg-type]
    return seen


def test_a_trusted_proxy_says_host_and_path() -> None:
    said = {"x-forwarded-host": "ops.example.com", "x-forwarded-prefix": "/green/room/"}
    seen = passed_on("10.0.0.1", said)
    assert (dict(seen["headers"])[b"host"], seen["prefix"]) == (b"ops.example.com", "/green/room")
    seen = passed_on("10.0.0.2", said)
    assert dict(seen["headers"])[b"host"] == b"inside:8081"
    assert "prefix" not in seen


@pytest.mark.parametrize(
    "prefix",
    ["//evil.example", "/a//b", "a", "/" + "x" * 65, "/a" * 9, "/a?b", '/"><script>', "/../x"],
)
def test_a_prefix_that_is_no_path_is_ignored(prefix: str) -> None:
    assert (
        passed_on("10.0.0.1", {"x-forwarded-prefix": prefix, "x-forwarded-host": "evil example"})[
            "prefix"
        ]
        == ""
    )


def test_no_two_packages_have_a_template_or_an_asset_of_the_same_name() -> None:
    found = Counter(
        f"{folder}/{file.name}"
        for package in (rendering.__name__.rpartition(".")[0], *PACKAGES)
        for folder in ("templates", "assets")
        if (place := resources.files(package) / folder).is_dir()
        for file in place.iterdir()
        if file.is_file()
    )
    assert [name for name, count in found.items() if count > 1] == []


def test_every_folder_of_templates_is_found() -> None:
    source = Path(str(resources.files("greenroom")))
    folders = {file.parent.parent for file in source.rglob("templates/*.html")}
    packages = {".".join(("greenroom", *one.relative_to(source).parts)) for one in folders}
    assert packages == {rendering.__name__.rpartition(".")[0], *PACKAGES}
