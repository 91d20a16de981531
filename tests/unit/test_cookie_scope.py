"""Where the ticket cookie is valid: as published, and always so that a browser accepts it and sends
it back.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.request.claims import Claims, Clash, Footprint
from greenroom.request.cookie_scope import (
    PATH_MAX,
    CookieScope,
    cookie_scope,
)


def scope(*routes: str, case_insensitive: bool = False) -> CookieScope:
    return cookie_scope(tuple(Route(*_split(route)) for route in routes), case_insensitive)


def _split(route: str) -> tuple[str, str]:
    host, slash, path = route.partition("/")
    return host, slash + path


def domain_and_path(*routes: str) -> tuple[str, str]:
    found = scope(*routes)
    return found.domain, found.path


def test_one_route_gets_its_host_and_its_path() -> None:
    assert domain_and_path("example.com/es/product_123") == ("example.com", "/es/product_123")
    assert scope("example.com/").problem is None


def test_several_routes_get_the_common_domain_and_the_common_path() -> None:
    assert domain_and_path(
        "a.example.com/shoes/product_123", "b.example.com/shoes/product_456"
    ) == ("example.com", "/shoes")


@pytest.mark.parametrize(
    ("hosts", "domain"),
    [
        (["example.com", "www.example.com"], "example.com"),
        (["www.example.com", "www.example.com"], "www.example.com"),
        (["a.shop.example.com", "b.shop.example.com", "shop.example.com"], "shop.example.com"),
        (["a.shop.example.com", "b.example.com"], "example.com"),
        (["myexample.com", "example.com"], ""),
        (["example.com", "example.org"], ""),
        (["one.com", "two.com"], ""),
        (["one.co.uk", "two.co.uk"], ""),
        (["gov.uk"], "gov.uk"),
        (["a.one.co.uk", "b.one.co.uk"], "one.co.uk"),
        (["one.com.br", "two.com.br"], ""),
        (["a.x.de", "b.x.de"], "x.de"),
        (["a.com.com", "b.com.com"], "com.com"),
        (["localhost"], ""),
        (["a.localhost", "b.localhost"], ""),
        (["shop"], ""),
        (["127.0.0.1"], ""),
        (["127.0.0.1", "128.0.0.1"], ""),
        (["10.0.0.1", "a.0.0.1"], ""),
        (["*"], ""),
        (["*", "example.com"], ""),
    ],
)
def test_the_domain_is_the_longest_common_one_that_browsers_accept(
    hosts: list[str], domain: str
) -> None:
    assert scope(*(f"{host}/" for host in hosts)).domain == domain


@pytest.mark.parametrize(
    ("paths", "path"),
    [
        (["/"], "/"),
        (["/shop"], "/shop"),
        (["/shop/"], "/shop"),
        (["/shop", "/shopping"], "/"),
        (["/shop", "/shop/x"], "/shop"),
        (["/a/b/c", "/a/b/d", "/a/b"], "/a/b"),
        (["/a", "/b"], "/"),
        (["/a/b", "/"], "/"),
        (["/caf%C3%A9"], "/"),
        (["/menu/caf%C3%A9/today"], "/menu"),
        (["/menu/caf%C3%A9/today", "/menu/caf%C3%A9/soon"], "/menu"),
        (["/" + "a" * 1000 + "/" + "b" * 1000], "/" + "a" * 1000),
        (["/" + "a" * 2000], "/"),
    ],
)
def test_the_path_is_the_longest_common_one_that_browsers_send_back(
    paths: list[str], path: str
) -> None:
    assert scope(*(f"example.com{each}" for each in paths)).path == path


def test_a_room_without_regard_to_case_is_valid_for_every_path_because_cookie_paths_are_case_sensitive() -> (
    None
):
    assert scope("example.com/Black-Friday", case_insensitive=True).path == "/"


def test_hosts_that_cannot_share_a_cookie_are_reported_to_the_operator() -> None:
    problem = scope("one.com/", "two.com/", "three.com/", "four.com/").problem
    assert problem is not None
    assert str(problem) == (
        "additional_routes: no cookie can be shared by one.com, two.com, three.com and more: a visitor needs a place for each host"
    )
    assert scope("localhost/", "localhost/x").problem is None


def room(
    name: str, route: str, *more: str, suffix: str = "", case_insensitive: bool = False
) -> Room:
    host, path = _split(route)
    others = tuple(Route(*_split(each)) for each in more)
    return Room(
        id=name,
        name=name,
        host=host,
        path=path,
        additional_routes=others,
        cookie_suffix=suffix,
        case_insensitive_paths=case_insensitive,
        total_active_users=1,
        new_users_per_minute=1,
    )


def clashes(rooms: list[Room]) -> list[Clash[str]]:
    claims: Claims[str] = Claims()
    found = []
    for each in rooms:
        found += claims.clashes(Footprint.of(each))
        claims.add(f"waiting room {each.name}", Footprint.of(each))
    return found


def test_two_rooms_that_would_overwrite_each_others_cookie_are_reported() -> None:
    found = clashes(
        [room("a", "x.com/A", case_insensitive=True), room("b", "x.com/B", case_insensitive=True)]
    )
    assert [clash.pointer for clash in found] == ["cookie_suffix"]
    assert found[0].reason(found[0].owner or "") == (
        "must differ from that of waiting room a: both cookies are __cfwaitingroom for x.com/, and each would overwrite the other"
    )


def test_rooms_with_a_path_host_or_suffix_of_their_own_do_not_clash() -> None:
    assert (
        clashes(
            [
                room("a", "x.com/"),
                room("b", "x.com/shop"),
                room("c", "y.com/"),
                room("d", "*/"),
                room("e", "localhost/"),
            ]
        )
        == []
    )
    assert clashes([room("a", "x.com/%C3%A9", suffix="a"), room("b", "x.com/", suffix="b")]) == []


def test_rooms_that_share_a_common_domain_clash() -> None:
    several = room("a", "a.x.com/", "b.x.com/", suffix="s")
    assert len(clashes([several, room("b", "x.com/", suffix="s")])) == 1
    assert (
        len(
            clashes(
                [room("a", "one.com/", "two.com/", suffix="s"), room("b", "two.com/", suffix="s")]
            )
        )
        == 1
    )


labels = st.sampled_from(["a", "b", "shop", "example", "com", "co", "uk", "de", "1", "127"])
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)
segments = st.sampled_from(["a", "b", "shop", "shopping", "caf%C3%A9", "A"])
paths = st.lists(segments, max_size=4).map(lambda parts: "/" + "/".join(parts))
routes = st.lists(st.builds(Route, hosts, paths), min_size=1, max_size=4).map(tuple)


def browser_accepts(domain: str, host: str) -> bool:
    """RFC 6265, 5.3 and 5.1.3: a domain of at least two labels that the host is or ends in, and no
    address.
    """
    if not domain:
        return True
    return (
        "." in domain
        and not domain.replace(".", "").isdigit()
        and (host == domain or host.endswith("." + domain))
    )


def browser_sends(cookie_path: str, url_path: str) -> bool:
    """RFC 6265, 5.1.4."""
    return url_path == cookie_path or (
        url_path.startswith(cookie_path)
        and (cookie_path[-1] == "/" or url_path[len(cookie_path)] == "/")
    )


@given(routes, st.sampled_from(["", "/", "/x", "/x/y"]), st.booleans())
@example((Route("a.1.1", "/"),), "", False)
def test_a_browser_takes_the_cookie_on_every_route_and_sends_it_back_below_it(
    routes: tuple[Route, ...], below: str, any_case: bool
) -> None:
    found = cookie_scope(routes, any_case)
    assert len(found.path) <= PATH_MAX
    for route in routes:
        assert browser_accepts(found.domain, route.host)
        for url in {
            route.path.rstrip("/") + below or "/",
            (route.path.rstrip("/") + below or "/").replace("%C3%A9", "%c3%a9"),
        }:
            assert browser_sends(found.path, url)
            assert not any_case or browser_sends(found.path, url.upper())


@given(routes)
def test_the_order_of_the_routes_does_not_matter(routes: tuple[Route, ...]) -> None:
    there, back = cookie_scope(routes), cookie_scope(routes[::-1])
    assert (there.domain, there.path) == (back.domain, back.path)


def test_a_pattern_of_hosts_shares_one_cookie_where_a_browser_lets_it() -> None:
    assert scope("*.example.com/shop").domain == "example.com"
    assert scope("*.shop.example.com/", "example.com/").domain == "example.com"
    assert scope("*.co.uk/").domain == ""
    assert scope("*.co.uk/").problem is not None
    assert scope("*.localhost/").domain == ""


@pytest.mark.parametrize(
    ("path", "cut"),
    [
        ("/sho<p>", "/"),
        ("/a/b'c/d", "/a"),
        ("/a|b", "/"),
        ("/a^b/c", "/"),
        ("/a/b!c", "/a"),
        ("/a/b-c._~/d", "/a/b-c._~/d"),
    ],
)
def test_a_path_ends_before_what_browsers_may_write_in_another_way(path: str, cut: str) -> None:
    assert scope(f"example.com{path}").path == cut
