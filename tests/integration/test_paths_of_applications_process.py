"""URLs of real applications through a real process: what passes when a host lets it, what never
gets around a room, what says why.
"""

import socket
from typing import Any

import pytest

CONFIG = """
origin = "{origin}"
{settings}
[[rooms]]
name = "shop"
host = "*"
path = "/shop"
total_active_users = 1
new_users_per_minute = 100
[[rooms]]
name = "admin"
host = "*"
path = "/admin"
cookie_suffix = "admin"
total_active_users = 1
new_users_per_minute = 100
rules = [{{ expression = 'starts_with(http.request.uri.path, "/admin/open/")' }}]
"""
REFUSE = 'ambiguous_paths = "refuse"\nmerge_slashes = true'
PASS = 'ambiguous_paths = "pass"\nmerge_slashes = false'
APPLICATIONS = [
    "/wiki/AC%2FDC",
    "/api/v4/projects/group%2Fproject/issues",
    "/api/queues/%2F/orders",
    "/@scope%2fpackage",
    "/matrix;color=red/x;y",
    "/img/unsafe//https://cdn.example/a.png",
    "/files/a%252Fb",
    "/app;jsessionid=1A2B",
    "/a;b.txt",
    "/a%3Bb.txt",
    "/im/https://cdn.x/a.png",
    "/wiki/Who%3F",
    "/k\u00f6ln/stra\u00dfe",
]


def raw_get(running: Any, target: bytes) -> tuple[int, bytes]:
    """The status and the body for a target that no client library would send like this."""
    with socket.create_connection(running.address, 20) as talk:
        talk.sendall(
            b"GET "
            + target
            + b" HTTP/1.1\r\nHost: a.example\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
        )
        answer = b""
        while data := talk.recv(65536):
            answer += data
    return int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("settings", ["", PASS])
@pytest.mark.parametrize("path", ["/shop", "/"])
def test_targets_of_applications_reach_the_origin_as_they_came(
    greenroom: Any, origin: Any, settings: str, path: str
) -> None:
    text = CONFIG.replace(
        'path = "/shop"\ntotal_active_users = 1', f'path = "{path}"\ntotal_active_users = 100'
    )
    running = greenroom.config(text.format(origin=origin.url, settings=settings))
    for target in APPLICATIONS:
        assert raw_get(running, target.encode())[0] == 200, target
    assert raw_get(running, "/search?q=Köln".encode())[0] == 200
    seen = [line.removeprefix("GET ").encode("latin-1").decode() for line in origin.requests]
    assert seen == [*APPLICATIONS, "/search?q=Köln"]


def test_a_host_may_refuse_them_and_the_answer_says_why(greenroom: Any, origin: Any) -> None:
    running = greenroom.config(CONFIG.format(origin=origin.url, settings=REFUSE))
    said = {target: raw_get(running, target.encode()) for target in APPLICATIONS}
    assert said["/wiki/AC%2FDC"] == (400, b"400 Bad Request: the path contains an encoded slash\n")
    assert said["/matrix;color=red/x;y"] == (
        400,
        b"400 Bad Request: the path contains a path parameter (;)\n",
    )
    assert said["/files/a%252Fb"] == (
        400,
        b"400 Bad Request: the path contains a doubly encoded character\n",
    )
    assert said["/img/unsafe//https://cdn.example/a.png"][0] == 200
    assert origin.requests == [
        "GET /img/unsafe/https:/cdn.example/a.png", "GET /app", "GET /im/https:/cdn.x/a.png", "GET /wiki/Who%3F",
    ], "each in its one form"  # fmt: skip


def test_where_readings_differ_the_one_form_goes_on_and_a_path_without_one_is_refused(
    greenroom: Any, origin: Any
) -> None:
    text = CONFIG.replace("total_active_users = 1\n", "total_active_users = 100\n")
    running = greenroom.config(text.format(origin=origin.url, settings=""))
    for target in (
        b"//shop/a",
        b"/shop;jsessionid=1A2B",
        b"/admin//open/a",
        b"//robots.txt",
        b"/shop//a",
    ):
        assert raw_get(running, target)[0] == 200, target
    assert origin.requests == [
        "GET /shop/a",
        "GET /shop",
        "GET /admin/open/a",
        "GET /robots.txt",
        "GET /shop//a",
    ]
    for target, why in (
        (b"/shop%2Fa", "an encoded slash"), (b"/shop;v=1/a", "a path parameter (;)"), (b"/shop%3Fa", "an encoded question mark or #"),
        (b"/shop%253Fa", "an encoded question mark or #"), (b"/x%252F..%252Fshop", "a doubly encoded character"),
        (b"/admin/open%2Fa", "an encoded slash"), (b"/shop%2F..%2Fadmin", "an encoded slash"),
    ):  # fmt: skip
        assert raw_get(running, target) == (
            400,
            f"400 Bad Request: the path contains {why}\n".encode(),
        )
    assert len(origin.requests) == 5
    told = explained(greenroom, "http://a.example/shop%2Fa")
    assert "which do not belong to the same room and rules" in told
    assert "room      shop" in explained(greenroom, "http://a.example//shop/a")


@pytest.mark.parametrize("settings", ["", PASS])
def test_no_spelling_gets_around_a_full_room_or_its_rules(
    greenroom: Any, origin: Any, settings: str
) -> None:
    running = greenroom.config(CONFIG.format(origin=origin.url, settings=settings))
    for path in ("/shop", "/admin"):
        assert not running.visitor().get(path).waiting, "now the room is full"
    before = len(origin.requests)
    for target in (
        b"/x%2F..%2Fshop/a", b"/x/..;/shop", b"/shop;v=1/a", b"//shop/a", b"/shop%2Fa", b"/%2Fshop", b"/x%252F..%252Fshop", b"/shop%3Ba",
        b"/admin/open/..%2Fsecret", b"/admin/open%2F..%2Fsecret", b"/admin/open/..;/secret", b"/robots.txt%2F..%2Fshop",
        b"/.well-known/acme-challenge/..%2F..%2Fshop", b"/shop%2F..%2Fadmin", b"/x%5Cshop",
        b"/shop%3Fa", b"/shop%23", b"/shop%253%46a", b"/x//..%2Fshop", b"/shop;jsessionid=1", b"/admin/open//../secret", b"/sh\xc3\xb6p/..%2Fshop",
        b"/admin//open%2F..%2F..%2Fsecret", b"/robots.txt;/..%2Fshop",
    ):  # fmt: skip
        status, body = raw_get(running, target)
        assert status == 400 or b"<html" in body, target
    assert len(origin.requests) == before
    if settings:
        assert raw_get(running, b"/shop%2F..%2Fadmin")[1].startswith(
            b"400 Bad Request: the path can be read in several ways"
        )
    assert raw_get(running, b"/admin/open/x;y=1")[0] == 200
    assert len(origin.requests) == before + 1


def test_robots_and_certificate_challenges_pass_a_full_room_unless_the_rule_is_switched_off(
    greenroom: Any, origin: Any
) -> None:
    text = CONFIG.replace('path = "/shop"', 'path = "/"')
    running = greenroom.config(text.format(origin=origin.url, settings=""))
    assert not running.visitor().get("/").waiting
    for path in ("/robots.txt", "/.well-known/acme-challenge/token"):
        answer = running.visitor().get(path)
        assert (answer.waiting, answer.headers.get("Set-Cookie")) == (False, None)
    assert running.visitor().get("/robots.txt.html").waiting
    running.stop()
    strict = greenroom.config(text.format(origin=origin.url, settings="pass_well_known = false"))
    assert strict.visitor().get("/robots.txt").waiting


def explained(greenroom: Any, url: str) -> str:
    running = greenroom.run("explain", url, "--config", str(greenroom.folder / "greenroom.toml"))
    assert running.end() == 0
    return running.output


def test_explain_shows_readings_and_the_default_rule(greenroom: Any, origin: Any) -> None:
    greenroom.folder.joinpath("greenroom.toml").write_text(
        CONFIG.format(origin=origin.url, settings=f'data = "{greenroom.data}"\n{PASS}')
    )
    told = explained(greenroom, "http://a.example/x%2F..%2Fshop/a")
    assert "readings  /x%2F..%2Fshop/a\n          /x/../shop/a\n          /shop/a\n" in told
    assert "room      shop" in told
    told = explained(greenroom, "http://a.example/shop%2F..%2Fadmin")
    assert (
        "is refused: Status 400: the path can be read in several ways, which belong to different rooms."
        in told
    )
    told = explained(greenroom, "http://a.example/shop/x")
    assert 'does not hold: http.request.uri.path eq "/robots.txt"' in told
    assert "readings" not in told
