"""What a visitor, or a stranger on the network, tries against the listener where proxies ask; and
what it keeps.
"""

from ipaddress import ip_network
from pathlib import Path

import pytest
from admission_world import small_room
from front_end_stories import PAGE, origin
from proxy_questions import PROXY, SPEAKING, Ask, Asking, AskingProxy, header
from visitors import Site

from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import forwarded_as_sent
from greenroom.proxies.service import KEPT_MAX, KEPT_S
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy

HOST = (b"Host", b"shop.example")
every_dialect = pytest.mark.parametrize("speak", SPEAKING.values(), ids=SPEAKING.keys())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, small_room(total_active_users=1, path="/sale"))


def proxy_for(site: Site, speak: Ask) -> AskingProxy:
    return AskingProxy(Asking(site.decisions), speak, origin)


def fill(site: Site, proxy: AskingProxy) -> bytes:
    """The one place is taken; the cookie of its visitor."""
    return proxy.request("GET", "/sale", (HOST, *PAGE)).cookie.partition(b";")[0]


@pytest.mark.parametrize(
    "path", [b"/forward-auth", b"/nginx/decide", b"/nginx/page", b"/ext-authz/", b"/", b"/metrics"]
)
def test_only_configured_proxies_may_ask(site: Site, path: bytes) -> None:
    said = (
        (b"Host", b"a"),
        (b"X-Forwarded-Method", b"GET"),
        (b"X-Forwarded-Uri", b"/sale"),
        (b"X-Forwarded-Host", b"shop.example"),
    )
    assert Asking(site.decisions).ask("GET", path, said, proxy="192.0.2.1").status == 403
    assert site.events_seen == []


def test_a_proxy_of_one_zone_may_not_ask_about_another(site: Site) -> None:
    asking = Asking(
        site.decisions, ForwardedPolicy(zones={"mine.example": [ip_network("10.0.0.0/8")]})
    )
    said = [
        (b"X-Forwarded-Method", b"GET"),
        (b"X-Forwarded-Uri", b"/sale"),
        (b"Host", b"greenroom"),
    ]
    assert (
        asking.ask(
            "GET", b"/forward-auth", (*said, (b"X-Forwarded-Host", b"a.mine.example"))
        ).status
        == 200
    )
    assert (
        asking.ask("GET", b"/forward-auth", (*said, (b"X-Forwarded-Host", b"shop.example"))).status
        == 403
    )


@every_dialect
@pytest.mark.parametrize(
    "target",
    [
        "/open/../sale",
        "/sale/../open",
        "//sale",
        "/./sale",
        "/%2e/sale",
        "/open/%2e%2e/sale",
        "/sale;a=b",
        "/sale%2fx",
        "/sale%3Fx",
        "/a%2f..%2fsale",
        "/a%5cb",
    ],
)
def test_a_path_that_servers_read_differently_is_refused(
    site: Site, speak: Ask, target: str
) -> None:
    proxy = proxy_for(site, speak)
    fill(site, proxy)
    given = proxy.request("GET", target, (HOST, *PAGE))
    assert given.status == 400
    assert len(proxy.served) == 1


@every_dialect
@pytest.mark.parametrize(
    ("target", "held"),
    [("/sale//x", True), ("/sale/a%2fb;c", True), ("/a%2fb", False), ("/a;b//c", False)],
)
def test_a_path_whose_readings_belong_to_one_room_is_judged_as_it_came(
    site: Site, speak: Ask, target: str, held: bool
) -> None:
    proxy = proxy_for(site, speak)
    fill(site, proxy)
    given = proxy.request("GET", target, (HOST, *PAGE))
    assert given.status == 200
    assert (b"line" in given.body) == held
    assert len(proxy.served) == (1 if held else 2)


@every_dialect
@pytest.mark.parametrize(
    "target", ["/%73ale", "/sale/caf%c3%a9", "/sale?x=//../y", "/sale/%7Ename"]
)
def test_a_path_may_spell_its_escapes_as_it_likes_and_is_still_covered(
    site: Site, speak: Ask, target: str
) -> None:
    proxy = proxy_for(site, speak)
    fill(site, proxy)
    given = proxy.request("GET", target, (HOST, *PAGE))
    assert given.status == 200
    assert b"line" in given.body
    assert len(proxy.served) == 1


@pytest.mark.parametrize("speak", [speak for name, speak in SPEAKING.items() if name != "spoe"])
@pytest.mark.parametrize("status", [200, 202, 429])
def test_a_held_visitor_is_never_a_yes_regardless_of_the_status_the_room_has(
    site: Site, speak: Ask, status: int
) -> None:
    site.configure(small_room(total_active_users=1, queueing_status_code=status))
    asking = Asking(site.decisions)
    seen: list[int] = []

    class Watched(Asking):
        def ask(self, *arguments):  # type: ignore[no-untyped-def]
            answer = asking.ask(*arguments)
            if (
                header(answer, b"Greenroom-Verdict") != b"forward"
                and arguments[1] != b"/nginx/page"
            ):
                seen.append(answer.status)
            return answer

    proxy = AskingProxy(Watched(site.decisions), speak, origin)
    assert proxy.request("GET", "/", (HOST, *PAGE)).body == b"hello from the origin"
    assert proxy.request("GET", "/", (HOST, *PAGE)).status == status
    assert seen
    assert all(code >= 300 for code in seen)


@every_dialect
def test_headers_that_override_method_or_path_change_nothing(site: Site, speak: Ask) -> None:
    proxy = proxy_for(site, speak)
    fill(site, proxy)
    for name in (
        b"X-HTTP-Method-Override",
        b"X-Original-URL",
        b"X-Rewrite-URL",
        b"X_Forwarded_Uri",
        b"X-Envoy-Original-Path",
    ):
        given = proxy.request("GET", "/sale", (HOST, *PAGE, (name, b"/open")))
        assert b"line" in given.body, name


def test_a_second_header_of_the_proxys_own_is_refused(site: Site) -> None:
    asking = Asking(site.decisions)
    said = (
        (b"X-Forwarded-Method", b"GET"),
        (b"X-Forwarded-Uri", b"/sale"),
        (b"X-Forwarded-Host", b"shop.example"),
        (b"Host", b"greenroom"),
    )
    assert asking.ask("GET", b"/forward-auth", said).status == 200
    for name, value in (
        (b"X-Forwarded-Method", b"POST"),
        (b"X-Forwarded-Uri", b"/open"),
        (b"X-Forwarded-Host", b"other.example"),
    ):
        assert asking.ask("GET", b"/forward-auth", ((name, value), *said)).status == 400
    for index in range(3):
        assert (
            asking.ask("GET", b"/forward-auth", said[:index] + said[index + 1 :]).status == 400
        ), "a proxy that says half is not configured"


@every_dialect
def test_the_host_of_a_visitors_own_header_does_not_count(tmp_path: Path, speak: Ask) -> None:
    site = Site(tmp_path, small_room(total_active_users=1, host="shop.example"))
    proxy = proxy_for(site, speak)
    proxy.request("GET", "/", (HOST, *PAGE))
    forged = ((b"Forwarded", b"for=1.2.3.4;host=other.example"),)
    if (
        speak is not SPEAKING["forward-auth"]
    ):  # there the proxy sets it itself, and a second one is refused
        forged += ((b"X-Forwarded-Host", b"other.example"),)
    assert b"line" in proxy.request("GET", "/", (HOST, *PAGE, *forged)).body


@every_dialect
def test_a_second_cookie_and_the_ticket_of_another_room_let_no_visitor_in(
    tmp_path: Path, speak: Ask
) -> None:
    other = small_room(id="other", name="other", path="/other", total_active_users=5)
    site = Site(tmp_path, small_room(total_active_users=1, path="/sale"), other)
    proxy = proxy_for(site, speak)
    inside = fill(site, proxy)
    foreign = proxy.request("GET", "/other", (HOST, *PAGE)).cookie.partition(b";")[0]
    forged = b"__cfwaitingroom=" + b"x" * 108
    for cookie in (foreign, forged, forged + b"; " + foreign):
        assert b"line" in proxy.request("GET", "/sale", (HOST, *PAGE, (b"Cookie", cookie))).body
    assert (
        proxy.request("GET", "/sale", (HOST, *PAGE, (b"Cookie", forged + b"; " + inside))).body
        == b"hello from the origin"
    )


@every_dialect
def test_the_application_does_not_see_the_ticket(site: Site, speak: Ask) -> None:
    proxy = proxy_for(site, speak)
    inside = fill(site, proxy)
    for cookie, seen in (
        (inside, []),
        (b"a=1; " + inside + b"; b=2", [b"a=1; b=2"]),
        (b"a=1", [b"a=1"]),
    ):
        proxy.request(
            "GET", "/sale" if cookie != b"a=1" else "/open", (HOST, *PAGE, (b"Cookie", cookie))
        )
        assert [value for name, value in proxy.served[-1] if name == b"Cookie"] == seen


def test_envoy_is_told_to_remove_a_cookie_header_that_held_only_the_ticket(site: Site) -> None:
    asking = Asking(site.decisions)
    answer = asking.ask("GET", b"/ext-authz/open", (HOST, (b"Cookie", b"__cfwaitingroom=x")))
    assert header(answer, b"x-envoy-auth-headers-to-remove") == b"cookie"
    assert (
        header(asking.ask("GET", b"/ext-authz/open", (HOST,)), b"x-envoy-auth-headers-to-remove")
        == b""
    )


def kept(asking: Asking) -> bytes:
    said = (
        (b"Host", b"g"),
        (b"X-Original-Method", b"GET"),
        (b"X-Original-URI", b"/sale"),
        (b"X-Original-Host", b"shop.example"),
        *PAGE,
    )
    return header(asking.ask("GET", b"/nginx/decide", said), b"Greenroom-Verdict")


def page(asking: Asking, name: bytes) -> int:
    answer = asking.ask("GET", b"/nginx/page", ((b"Host", b"g"), (b"Greenroom-Verdict", name)))
    assert header(answer, b"Refresh"), "it tries again by itself"
    return answer.status


def test_a_verdict_is_given_out_once_for_a_short_time_and_only_by_its_name(site: Site) -> None:
    asking = Asking(site.decisions)
    assert kept(asking) == b"forward"
    name = kept(asking)
    decided = len(site.events_seen)
    assert [
        page(asking, b"guessed"),
        page(asking, b""),
        page(asking, name),
        page(asking, name),
    ] == [503, 503, 200, 503]
    late = kept(asking)
    asking.now += KEPT_S
    assert page(asking, late) == 503
    assert len(site.events_seen) == decided + 1, "a page asks nothing"


def test_verdicts_that_nothing_fetches_take_a_bounded_place(site: Site) -> None:
    asking = Asking(site.decisions)
    kept(asking)
    names = [kept(asking) for _ in range(KEPT_MAX + 10)]
    assert len(asking.store) == KEPT_MAX
    assert [page(asking, names[0]), page(asking, names[-1])] == [503, 200]
    asking.now += KEPT_S
    kept(asking)
    assert len(asking.store) == 1


@every_dialect
def test_an_error_in_here_is_never_a_yes(site: Site, speak: Ask) -> None:
    asking = Asking(site.decisions)

    class Broken:
        def verdict(self, *_: object) -> None:
            raise RuntimeError("broken on purpose")

        receive = verdict

    asking.questions.decisions = Broken()  # type: ignore[assignment]
    assert speak(asking, "GET", b"/sale", (HOST, *PAGE), "192.0.2.1").status >= 400
    assert [str(error) for error in asking.errors] == ["broken on purpose"]


def test_a_target_that_is_no_path_is_never_unchanged() -> None:
    for target in (b"*", b"http://shop.example/", b""):
        assert isinstance(
            forwarded_as_sent(Arrival("GET", "http", "shop.example", "/", "", (), PROXY, target)),
            Refusal,
        )
