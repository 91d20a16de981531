"""Signing in through an OpenID Connect provider: a real one over HTTP, its people and their roles,
and everything that must not let in.
"""

import asyncio
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dashboard_rig import DashboardRig, Visitor, dashboard_in
from oidc_rig import CLIENT, RETURN, Provider
from oidc_sign_in import (
    BROWSER,
    ROLES,
    at_provider,
    back,
    is_in,
    reason,
    saying,
    sign_in,
    use,
    without,
)

from greenroom.accounts.oidc_provider import RETRY_MS, OidcProvider
from greenroom.accounts.sign_in import HOUR_MS
from greenroom.dashboard import PREFIX
from greenroom.model.account import LINK, SESSION
from greenroom.model.oidc import OidcRole
from greenroom.outbound import OutboundPolicy
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.runtime.control_plane import sign_in_lines
from greenroom.runtime.rebinding import BehindProxy
from greenroom.settings.process import Address
from greenroom.web.authenticator import FAILURES_MAX
from greenroom.web.client_address import WithClientAddress


def test_a_person_of_the_provider_gets_the_role_and_the_zones_of_the_first_row_that_fits(
    rig: DashboardRig, provider: Provider
) -> None:
    visitor = Visitor(rig, {"greenroom_session": "planted by a stranger"})
    assert "Sign in with Login" in visitor.get("/sign-in").text
    done = sign_in(visitor, "/sign-in/oidc?next=%2Frooms%3Fq%3Dshop")
    assert (done.status_code, done.headers["location"]) == (303, "/rooms?q=shop")
    assert visitor.cookies["greenroom_session"] != "planted by a stranger"
    lines = done.headers.get_list("set-cookie")
    assert any(line.startswith('greenroom_oidc=""') for line in lines)
    assert all("HttpOnly" in line for line in lines if line.startswith("greenroom_session"))
    assert visitor.get("/zones/z1/rooms/r1").status_code == 200
    assert visitor.get("/zones/z2/rooms/r2").status_code == 404
    assert visitor.get("/accounts").status_code == 403
    assert "ada@example.com" in visitor.get("/account").text
    visitor.post("/zones/z1/rooms/r1/remove", name="r1")
    provider.user["groups"] = ["shop", "bosses"]
    boss = Visitor(rig)
    sign_in(boss)
    assert "ada@example.com (OpenID Connect)" in boss.get("/accounts").text


def test_signing_out_ends_the_session_and_offers_to_end_that_of_the_provider(
    rig: DashboardRig, provider: Provider
) -> None:
    visitor = Visitor(rig)
    sign_in(visitor)
    kept = dict(visitor.cookies)
    left = visitor.post("/sign-out")
    assert left.headers["location"] == "/sign-in?notice=signed-out&left=oidc"
    assert "Sign out there too" in visitor.get(left.headers["location"]).text
    visitor.cookies = kept
    assert not is_in(visitor)
    there = visitor.get("/sign-in/oidc/leave").headers["location"]
    assert there.startswith(f"{provider.issuer}/leave?client_id={CLIENT}")
    assert BROWSER.get(there).headers["location"] == "http://testserver/sign-in"


NO_ROLE = "gives you no access here"


@pytest.mark.parametrize(
    ("user", "settings", "lets_in"),
    [
        ({"groups": []}, {}, False),
        ({"groups": "shop"}, {}, True),
        ({"groups": ["shopper", "xshop"]}, {}, False),
        ({"groups": {"shop": True}}, {}, False),
        ({}, {"allowed_domains": ("Example.com",)}, True),
        ({"email": "ada@example.com.evil.example"}, {"allowed_domains": ("example.com",)}, False),
        ({"email_verified": False}, {"allowed_domains": ("example.com",)}, False),
        ({"email_verified": None}, {"allowed_domains": ("example.com",)}, False),
        ({}, {"allowed_groups": ("staff",)}, False),
        ({"groups": ["shop", "staff"]}, {"allowed_groups": ("staff",)}, True),
        ({}, {"roles": ()}, False),
        ({}, {"roles": (OidcRole(claim="sub", value="u1", role="viewer"),)}, True),
        ({}, {"roles": (OidcRole(claim="email", value="ada@example.com", role="viewer"),)}, True),
        (
            {"email_verified": False},
            {"roles": (OidcRole(claim="email", value="ada@example.com", role="viewer"),)},
            False,
        ),
        (
            {},
            {
                "roles": (
                    OidcRole(
                        claim="groups", value="shop", role="operator", zones=("gone.example",)
                    ),
                )
            },
            False,
        ),
    ],
)
def test_access_needs_a_row_that_fits(
    rig: DashboardRig,
    provider: Provider,
    user: dict[str, Any],
    settings: dict[str, Any],
    lets_in: bool,
) -> None:
    use(rig, provider, **settings)
    provider.user |= user
    visitor = Visitor(rig)
    answer = sign_in(visitor)
    assert is_in(visitor) is lets_in
    if not lets_in:
        assert NO_ROLE in reason(answer)
        assert rig.store.sessions.rows(SESSION) == []


def test_claims_that_are_only_in_userinfo_count_too_and_only_for_the_same_person(
    rig: DashboardRig, provider: Provider
) -> None:
    provider.in_userinfo = ("groups", "email", "email_verified")
    visitor = Visitor(rig)
    sign_in(visitor)
    assert is_in(visitor)
    provider.change_claims = lambda claims: claims.update(sub="another")
    assert "userinfo" in reason(sign_in(Visitor(rig)))


def test_what_the_settings_say_now_counts_for_sessions_that_are_open(
    rig: DashboardRig, provider: Provider
) -> None:
    visitor = Visitor(rig)
    sign_in(visitor)
    rig_settings = rig.oidc.settings if rig.oidc else None
    assert rig_settings is not None
    use(rig, provider, (replace(ROLES[1], role="viewer"),))
    assert (is_in(visitor), visitor.get("/zones/z1/rooms/r1/edit").status_code) == (True, 403)
    use(rig, provider, ROLES[:1])
    assert not is_in(visitor)
    use(rig, provider)
    assert is_in(visitor)
    rig.oidc = None
    assert not is_in(visitor)
    use(rig, provider, session_hours=1)
    sign_in(visitor)
    rig.clock.at_ms += HOUR_MS
    assert not is_in(visitor)


def test_an_answer_counts_in_the_browser_that_began_and_once(
    rig: DashboardRig, provider: Provider
) -> None:
    provider.codes_again = True  # the worst provider: it redeems a code as often as it is asked
    visitor, stranger = Visitor(rig), Visitor(rig)
    location = at_provider(visitor)
    assert "another browser" in reason(back(stranger, location))
    at_provider(stranger)
    assert "another browser" in reason(
        back(stranger, location)
    )  # forged state: it belongs to the sign-in of the other
    assert "/token" not in provider.asked
    assert back(visitor, location).status_code == 303
    again = Visitor(rig, {"greenroom_oidc": visitor.cookies["greenroom_oidc"]})
    assert "used already" in reason(back(again, location))
    assert len(rig.store.sessions.rows(SESSION)) == 1


def test_a_code_of_another_sign_in_cannot_be_redeemed(
    rig: DashboardRig, provider: Provider
) -> None:
    visitor, victim = Visitor(rig), Visitor(rig)
    stolen = parse_qs(urlsplit(at_provider(victim)).query)["code"][0]
    state = parse_qs(urlsplit(at_provider(visitor)).query)["state"][0]
    assert "invalid_grant" in reason(visitor.get(f"{RETURN}?code={stolen}&state={state}"))
    assert not is_in(visitor)


def test_a_refusal_of_the_provider_is_told_and_words_of_strangers_are_not(
    rig: DashboardRig, provider: Provider
) -> None:
    provider.refuse = "access_denied"
    assert "Login refused: access_denied" in reason(sign_in(Visitor(rig)))
    forged = Visitor(rig).get(f"{RETURN}?error=Call%20us%20at%20555&state=x")
    assert "555" not in forged.text
    visitor = Visitor(rig)
    state = parse_qs(urlsplit(at_provider(visitor)).query)["state"][0]
    assert "another provider" in reason(
        visitor.get(f"{RETURN}?code=x&state={state}&iss=https%3A%2F%2Fevil.example")
    )
    assert "no code" in reason(visitor.get(f"{RETURN}?state={state}"))


@pytest.mark.parametrize(
    "after", ["//evil.example", "https://evil.example", "/\\evil.example", "/sign-out"]
)
def test_signing_in_never_leads_elsewhere(
    rig: DashboardRig, provider: Provider, after: str
) -> None:
    assert sign_in(Visitor(rig), f"/sign-in/oidc?next={after}").headers["location"] == "/rooms"
    visitor = Visitor(rig)
    location = at_provider(visitor)
    visitor.cookies["greenroom_oidc"] = (
        visitor.cookies["greenroom_oidc"].partition(".")[0] + "." + after
    )
    assert back(visitor, location).headers["location"] == "/rooms"


def test_guessing_is_limited(rig: DashboardRig, provider: Provider) -> None:
    visitor = Visitor(rig, address="127.0.0.77")
    location = at_provider(visitor)
    state, cookies = parse_qs(urlsplit(location).query)["state"][0], dict(visitor.cookies)
    for _ in range(FAILURES_MAX):
        guessing = Visitor(rig, dict(cookies), address="127.0.0.77")
        assert guessing.get(f"{RETURN}?code=x&state={state}").status_code == 401
    asked = len(provider.asked)
    assert back(visitor, location).status_code == 429
    assert len(provider.asked) == asked


def test_a_page_of_another_site_locks_nobody_out(rig: DashboardRig, provider: Provider) -> None:
    """Its pictures lead browsers of the same address here, without the cookie or with it."""
    visitor = Visitor(rig, address="127.0.0.77")
    location = at_provider(visitor)
    for cookies in ({}, dict(visitor.cookies)):
        for _ in range(FAILURES_MAX):
            lured = Visitor(rig, dict(cookies), address="127.0.0.77")
            assert lured.get(f"{RETURN}?code=x&state=x").status_code == 401
    assert back(visitor, location).status_code == 303


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (saying(issuer="https://evil.example"), "names itself https://evil.example"),
        (saying(token_endpoint="http://169.254.169.254/token"), "does not begin with https://"),
        (saying(jwks_uri="https://169.254.169.254/keys"), "169.254.169.254"),
        (saying(jwks_uri="https://10.0.0.1/keys"), "10.0.0.1"),
        (saying(jwks_uri="file:///etc/passwd"), "https:// or http://"),
        (saying(jwks_uri=7), "jwks_uri"),
        (without("token_endpoint"), "token_endpoint"),
    ],
)
def test_a_provider_cannot_send_greenroom_elsewhere(
    rig: DashboardRig, provider: Provider, change: Any, said: str
) -> None:
    provider.change_document = change
    answer = Visitor(rig).get("/sign-in/oidc")
    assert answer.status_code == 503
    assert said in reason(answer)
    assert "User name" in answer.text


def test_a_provider_that_breaks_off_is_told_and_costs_no_try(
    rig: DashboardRig, provider: Provider
) -> None:
    def broken(_claims: dict[str, Any]) -> str:
        raise BrokenPipeError  # the connection ends without an answer

    provider.sign = broken
    visitor = Visitor(rig, address="127.0.0.78")
    for _ in range(FAILURES_MAX + 1):
        answer = sign_in(visitor)
        assert (answer.status_code, "cannot be asked at the moment" in reason(answer)) == (
            503,
            True,
        )


def test_a_provider_that_is_away_is_told_and_asked_again_after_a_while(
    rig: DashboardRig, provider: Provider
) -> None:
    provider.change_document = saying(issuer="")
    for _ in range(5):
        assert Visitor(rig).get("/sign-in/oidc").status_code == 503
    assert provider.asked == ["/.well-known/openid-configuration"]
    provider.change_document = lambda _document: None
    rig.clock.at_ms += RETRY_MS
    visitor = Visitor(rig)
    sign_in(visitor)
    assert is_in(visitor)


def test_without_a_provider_there_is_nothing_to_sign_in_with(rig: DashboardRig) -> None:
    rig.oidc = None
    for path in ("/sign-in/oidc", RETURN, "/sign-in/oidc/leave"):
        assert Visitor(rig).get(path).status_code == 404
    assert "Sign in with" not in Visitor(rig).get("/sign-in").text.replace(
        "Sign in with the token", ""
    )


def test_a_listener_of_greenroom_is_no_provider(
    rig: DashboardRig, provider: Provider, tmp_path: Path
) -> None:
    port = int(provider.issuer.rpartition(":")[2])
    assert rig.oidc is not None
    rig.oidc = OidcProvider(
        rig.oidc.settings, OutboundPolicy, rig.clock, lambda: [("127.0.0.1", port)]
    )
    assert "listener of greenroom itself" in reason(Visitor(rig).get("/sign-in/oidc"))


def test_the_log_offers_no_way_around_a_provider_that_knows_admins(
    rig: DashboardRig, provider: Provider, tmp_path: Path
) -> None:
    with dashboard_in(tmp_path) as fresh:
        for roles, lines in (((), 1), (ROLES[1:], 1), (ROLES, 0)):
            use(fresh, provider, roles)
            assert (
                len(asyncio.run(sign_in_lines(fresh.app, Address("127.0.0.1", 1), tls=False)))
                == lines
            )
            assert len(fresh.store.sessions.rows(LINK)) <= 2


def test_behind_a_proxy_and_below_a_path_the_provider_sends_people_back_there(
    rig: DashboardRig, provider: Provider
) -> None:
    policy = ForwardedPolicy([ip_network("10.0.0.1")])
    app, rig.app = (
        rig.app,
        BehindProxy(WithClientAddress(rig.app, lambda: policy), lambda: policy, PREFIX),
    )  # type: ignore[assignment]
    try:
        visitor = Visitor(rig, address="10.0.0.1", base="http://127.0.0.1:8081")
        said = {
            "X-Forwarded-For": "192.0.2.9",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Prefix": "/greenroom",
        }
        said["X-Forwarded-Host"] = "ops.example.com"
        begun = visitor.get("/sign-in/oidc?next=/rooms", **said)
        assert "Path=/greenroom/sign-in/oidc;" in begun.headers["set-cookie"]
        location = BROWSER.get(begun.headers["location"]).headers["location"]
        assert location.startswith(f"https://ops.example.com/greenroom{RETURN}?")
        done = visitor.get(location.removeprefix("https://ops.example.com/greenroom"), **said)
        assert (done.status_code, done.headers["location"]) == (303, "/greenroom/rooms")
        assert all(
            "Secure" in line
            for line in done.headers.get_list("set-cookie")
            if "greenroom_session" in line
        )
    finally:
        rig.app = app


HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\u202e\x07" + "a" * 500


def test_what_a_provider_says_is_never_markup(rig: DashboardRig, provider: Provider) -> None:
    provider.user |= {"sub": HOSTILE[:200], "email": HOSTILE, "groups": ["bosses", HOSTILE]}
    visitor = Visitor(rig)
    sign_in(visitor)
    visitor.post("/lists/new", name="made_by_them", kind="ip")
    for path in ("/account", "/accounts", "/audit", "/rooms"):
        text = visitor.get(path).text
        assert "&lt;script&gt;alert(2)" in text
        for wrong in ("<script>alert", "<img src=x", "\u202e", "\x07", "a" * 300):
            assert wrong not in text, path
    assert rig.store.audit(1)[0].name == "made_by_them"
    provider.refuse = HOSTILE
    refused = sign_in(Visitor(rig))
    assert "&lt;script&gt;" in refused.text
    assert "<script>alert" not in refused.text


@pytest.mark.parametrize(
    "query",
    [
        "code=%00",
        "state=%FF",
        "error=%E2%80%AE",
        "code=" + "a" * 4000,
        "state=a&state=b",
        "iss=%0d%0aSet-Cookie:x",
    ],
)
def test_hostile_answers_are_taken_with_care(
    rig: DashboardRig, provider: Provider, query: str
) -> None:
    for cookies in (
        {},
        {"greenroom_oidc": "."},
        {"greenroom_oidc": "%00.%FF"},
        {"greenroom_oidc": "a" * 3000},
    ):
        answer = Visitor(rig, dict(cookies), address="127.0.0.79").get(f"{RETURN}?{query}")
        assert answer.status_code in (401, 429)
        assert "set-cookie" not in answer.headers or answer.headers["set-cookie"].startswith(
            "greenroom_oidc="
        )
