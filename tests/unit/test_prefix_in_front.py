"""The path that a trusted proxy took off the front of the request's is in front of the cookie's:
browsers know paths with it only.
"""

from ipaddress import ip_network

import pytest
from admission_world import small_room
from hypothesis import given
from hypothesis import strategies as st

from greenroom.asgi import _before
from greenroom.decision.cookies import PREFIXES_MAX, TicketCookies
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.model.visit import Arrival
from greenroom.request.arrival import Sender, arrival_from
from greenroom.request.cookie_scope import PATH_MAX
from greenroom.request.forwarded import ForwardedPolicy, prefix_of

POLICY = ForwardedPolicy([ip_network("10.0.0.1")])
SEGMENT = st.from_regex(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,20}", fullmatch=True)
PREFIX = st.lists(SEGMENT, min_size=1, max_size=8).map(lambda parts: "/" + "/".join(parts))


def path_of(cookie: bytes) -> str:
    (path,) = [part[5:] for part in cookie.decode().split("; ") if part.startswith("Path=")]
    return path


def by_gateway(peer: str, *lines: str) -> Arrival:
    block = "\r\n".join(["GET /checkout HTTP/1.1", "Host: shop.example", *lines, "", ""])
    head = read_head(block.encode(), Peer(peer, False, POLICY))
    assert isinstance(head, RequestHead)
    return head.arrival


@pytest.mark.parametrize(
    ("peer", "lines", "prefix"),
    [
        ("10.0.0.1", ["X-Forwarded-Prefix: /gw"], "/gw"),
        ("10.0.0.1", ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Prefix: /gw/"], "/gw"),
        ("10.0.0.1", ["X-Forwarded-Prefix: /evil, /gw"], "/gw"),
        ("10.0.0.1", ["X-Forwarded-Prefix: /evil", "X-Forwarded-Prefix: /gw"], "/gw"),
        ("10.0.0.1", [], ""),
        ("10.0.0.1", ["X-Forwarded-Prefix: /"], ""),
        ("10.0.0.1", ["X-Forwarded-Prefix: /a; Domain=evil.example"], ""),
        ("10.0.0.1", ["X-Forwarded-Prefix: //evil.example"], ""),
        ("10.0.0.1", ["X-Forwarded-Prefix: /a/../b"], ""),
        ("192.0.2.7", ["X-Forwarded-Prefix: /gw"], ""),
    ],
)
def test_only_a_trusted_proxy_says_it(peer: str, lines: list[str], prefix: str) -> None:
    assert by_gateway(peer, *lines).prefix == prefix


def test_questions_of_other_proxies_pass_on_what_visitors_send_so_it_does_not_count() -> None:
    headers = [(b"Host", b"shop.example"), (b"X-Forwarded-Prefix", b"/gw")]
    sender = Sender("10.0.0.1", False, POLICY)
    asked = arrival_from("GET", b"/checkout", headers, sender)
    app = arrival_from("GET", b"/checkout", headers, sender, prefix=None)
    assert isinstance(asked, Arrival)
    assert isinstance(app, Arrival)
    assert (asked.prefix, app.prefix) == ("", "/gw")


@pytest.mark.parametrize(
    ("path", "prefix", "expected"),
    [("/checkout", "/gw", "/gw/checkout"), ("/", "/gw", "/gw"), ("/checkout", "", "/checkout")],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_it_goes_before_the_path_of_the_cookie(
    scheme: str, path: str, prefix: str, expected: str
) -> None:
    cookies = TicketCookies(small_room(path=path), always_use_https=False)
    writer = cookies.of(scheme, prefix)
    assert path_of(writer.set(b"s", 60, 0)) == path_of(writer.expire()) == expected
    assert (b"; Secure" in writer.expire()) == (scheme == "https")
    assert cookies.of(scheme, prefix) is writer


@given(PREFIX, st.sampled_from(["/", "/checkout", "/" + "a" * 1_000]))
def test_every_prefix_makes_a_cookie_that_comes_back(prefix: str, path: str) -> None:
    assert prefix_of(prefix.encode()) == prefix
    cookie = TicketCookies(small_room(path=path), always_use_https=False).of("http", prefix)
    found = path_of(cookie.expire())
    assert len(found) <= PATH_MAX
    asked = prefix + path
    assert asked == found or asked.startswith(f"{found}/"), "as RFC 6265, 5.1.4 matches"


def test_ready_made_cookies_are_bounded() -> None:
    cookies = TicketCookies(small_room(), always_use_https=False)
    for number in range(10 * PREFIXES_MAX):
        cookies.of("https", f"/{number}")
    assert len(cookies._below) <= PREFIXES_MAX


@pytest.mark.parametrize(
    ("root", "path", "before"),
    [
        ("", "/checkout", None),
        ("/gw", "/gw/checkout", ""),
        ("/gw", "/gw", ""),
        ("/gw", "/checkout", "/gw"),
        ("/gw", "/gwx", "/gw"),
        ("/a b", "/checkout", ""),
    ],
)
def test_the_root_path_of_an_asgi_application(root: str, path: str, before: str | None) -> None:
    assert _before(root, path) == before
