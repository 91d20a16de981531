"""Path and host confusion over real sockets: however a page of a room is spelled, it is held,
refused, or really another page.
"""

from collections.abc import Iterator

import pytest
from attack_rig import Got, NotingOrigin, lines_of, throw
from tests.conftest import Running, StartGreenroom

CONFIG = """
origin = "{url}"
trusted_proxies = ["127.0.0.2"]
[[rooms]]
name = "shop"
host = "*"
path = "/shop"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
[[rooms]]
name = "plus"
host = "*"
path = "/c++"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
cookie_suffix = "plus"
[[rooms]]
name = "vip"
host = "vip.example"
path = "/"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
cookie_suffix = "vip"
"""

HELD = [
    "/shop", "/shop/", "/shop/x/y", "/shop?x", "/shop/?x=/../open", "//shop", "///shop//x", "/./shop", "/open/../shop",
    "/open/./../shop/x", "/%73hop", "/s%68o%70/x",
    "/%2e/shop", "/open/%2e%2e/shop", "/open/.%2E/shop", "/x/y/../../shop", "/shop/./", "/shop/x/..", "/shop;jsessionid=1",
    "/shop/x;jsessionid=1.n", "/shop/../shop",
    "http://a/shop", "HTTP://A/open/../shop", "http://a//shop", "/c++", "/c%2B%2B", "/c+%2b/x", "/shop/caf%C3%A9",
    "/open/..//shop",
]  # fmt: skip
REFUSED = [
    "/open/..;/shop", "/open;/../shop", "/shop;", "/shop;x=1", "/shop;x/y", "/;/shop", "/.;/shop", "/open/..%3b/shop",
    "/shop%3bx", "/open%2f..%2fshop", "/%2fshop",
    "/open/..%2Fshop", "/open/..%5cshop", "/open\\..\\shop", "/\\shop", "\\shop", "/shop%00", "/shop%00.css", "/%00/shop",
    "/shop%0a", "/shop%0d%0aX:y", "/shop%7f",
    "/%252e%252e/shop", "/open/%252e%252e/shop", "/%2573hop", "/shop%252fx", "/shop%255cx", "/%25%37%33hop", "/%c0%afshop",
    "/%c0%ae%c0%ae/shop", "/%e0%80%afshop",
    "/%u0073hop", "/%", "/shop%", "/shop%2", "/shop%zz", "/../shop", "/../../shop", "/%2e%2e/shop", "/open/../../shop",
    "/open//../shop", "/shop//..", "/shop#x", "/#/../shop", "/shop\x7f",
    "/shop\x01", "/sh\xf6p", "/shop%3Fx", "/shop%23x", "http://b/shop", "http://a@b/shop", "http://a:99/shop", "https://a/shop",
    "ftp://a/shop", "a:80", "*", "shop", "?/shop",
]  # fmt: skip
ANOTHER_PAGE = [
    ("/shopping", "/shopping"), ("/open?/shop", "/open?/shop"), ("/open?x=/../shop;y=%2F%00", "/open?x=/../shop;y=%2F%00"),
    ("/SHOP", "/SHOP"), ("/x/shop", "/x/shop"),
    ("/shop/../open", "/open"), ("/shop/..", "/"), ("/.shop", "/.shop"), ("/shop%20", "/shop%20"), ("/shop%2520", "/shop%2520"),
    ("/%ef%bc%8fshop", "/%EF%BC%8Fshop"),
    ("/\xef\xbc\x8fshop", "/\xef\xbc\x8fshop"), ("/shop,x", "/shop,x"), ("/shop:x", "/shop:x"),
    ("/c%2520", "/c%2520"), ("/a|b", "/a%7Cb"),
]  # fmt: skip


class Target:
    def __init__(self, running: Running, origin: NotingOrigin) -> None:
        self.running, self.origin = running, origin

    def ask(self, target: str, headers: str = "", host: str = "a") -> tuple[Got, list[str]]:
        """The answer, and the lines that the origin saw."""
        before = len(self.origin.seen)
        (got,) = throw(
            self.running.address,
            f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode("latin-1"),
        )
        assert self.origin.garbage == []
        return got, lines_of(self.origin.seen[before:])


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    origin = NotingOrigin()
    running = StartGreenroom(tmp_path_factory.mktemp("paths")).config(CONFIG.format(url=origin.url))
    yield Target(running, origin)
    assert running.alive
    running.kill()
    origin.close()


@pytest.mark.parametrize("path", HELD)
def test_every_spelling_of_a_page_of_the_room_is_held(target: Target, path: str) -> None:
    got, lines = target.ask(path)
    assert (got.status, lines) == (200, [])
    assert "__cfwaitingroom" in got.head


@pytest.mark.parametrize("path", REFUSED)
def test_a_spelling_that_servers_read_differently_is_refused(target: Target, path: str) -> None:
    got, lines = target.ask(path)
    assert (got.status, lines) == (400, [])
    assert b"shop" not in got.body


@pytest.mark.parametrize(("path", "sent"), ANOTHER_PAGE)
def test_another_page_is_forwarded_exactly_as_it_was_matched(
    target: Target, path: str, sent: str
) -> None:
    got, lines = target.ask(path)
    assert got.from_origin
    assert lines == [f"GET {sent}"]


@pytest.mark.parametrize(
    "header",
    ["X-Original-URL: /shop", "X-Rewrite-URL: /shop", "X-Original-URI: /shop", "X-Forwarded-Uri: /shop",
    "X-Forwarded-Prefix: /shop", "X-Forwarded-Path: /shop",
     "X-Script-Name: /shop", "X_Original_URL: /shop", "Greenroom-Update: leave"],
)  # fmt: skip
def test_no_header_can_ask_the_origin_for_another_page(target: Target, header: str) -> None:
    _, lines = target.ask("/open", header + "\r\n")
    assert lines == ["GET /open"]
    assert "/shop" not in target.origin.seen[-1].head
    assert target.origin.seen[-1].header(header.partition(":")[0].lower()) == []


@pytest.mark.parametrize(
    "host",
    [
        "vip.example",
        "VIP.Example",
        "vip.example.",
        "vip.example:80",
        "vip.example:8080",
        "vip.example.:443",
    ],
)
def test_every_spelling_of_a_host_of_the_room_is_held(target: Target, host: str) -> None:
    got, lines = target.ask("/open", host=host)
    assert (got.status, lines) == (200, [])
    assert not got.from_origin


@pytest.mark.parametrize(
    "host",
    [
        "vip.example, a",
        "a, vip.example",
        "vip.example/",
        "a@vip.example",
        "vip.example:x",
        "vip.example..",
        "vip.example#a",
        "vip%2eexample",
        "vip.exa\u00adple",
    ],
)
def test_a_doubtful_host_is_refused(target: Target, host: str) -> None:
    got, lines = target.ask("/open", host=host)
    assert (got.status, lines) == (400, [])


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-Host: open.example",
        "Forwarded: host=open.example",
        "X-Host: open.example",
        "X-Forwarded-Server: open.example",
    ],
)
def test_a_visitor_cannot_say_that_it_asked_another_host(target: Target, header: str) -> None:
    got, lines = target.ask("/open", header + "\r\n", host="vip.example")
    assert (got.from_origin, lines) == (False, [])
    target.ask("/open", header.replace("open.example", "vip.example") + "\r\n", host="open.example")
    assert target.origin.seen[-1].header("host") == ["open.example"]
    assert target.origin.seen[-1].header("x-forwarded-host") == ["open.example"]


def test_the_origin_is_told_the_real_visitor_and_not_what_the_visitor_says(target: Target) -> None:
    said = "".join(
        f"{name}: 6.6.6.6\r\n"
        for name in (
            "X-Forwarded-For",
            "X-Real-IP",
            "Forwarded",
            "X_Forwarded_For",
            "x-forwarded-for",
        )
    )
    target.ask("/open", said + "X-Forwarded-Proto: https\r\n")
    seen = target.origin.seen[-1]
    assert "6.6.6.6" not in seen.head
    assert seen.header("x-forwarded-for") == seen.header("x-real-ip") == ["127.0.0.1"]
    assert seen.header("x-forwarded-proto") == ["http"]
    assert seen.header("forwarded") == ['for=127.0.0.1;proto=http;host="a"']
