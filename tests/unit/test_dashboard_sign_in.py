"""Sign-in and sessions: what lets a person in, what ends a session, and what strangers cannot do to
others.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from dashboard_rig import PASSWORD, DashboardRig, Visitor, dashboard_in

from greenroom.accounts import people as accounts
from greenroom.accounts import tokens
from greenroom.accounts.dashboard.session import safe_path
from greenroom.accounts.sign_in import IDLE_MS, LINK_MS, LONGEST_MS
from greenroom.model.account import LINK, SESSION
from greenroom.web.authenticator import FAILURES_MAX, FAILURES_MS


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        yield found


def is_in(visitor: Visitor) -> bool:
    return visitor.get("/rooms").status_code == 200


def found_together(rig: DashboardRig, visitor: Visitor) -> list[bool]:
    """Whether the session is found as those of open streams are, all at once; and one that there
    never was.
    """
    asked = [visitor.cookies["greenroom_session"], "x" * 43]
    found = rig.app.sign_in.find_all(rig.store.read(), asked)
    return [secret in found for secret in asked]


def test_without_a_session_every_page_leads_to_the_sign_in_and_back(rig: DashboardRig) -> None:
    answer = Visitor(rig).get("/rooms?q=shop")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/sign-in?next=%2Frooms%3Fq%3Dshop",
    )


def test_the_first_link_makes_an_admin_and_works_once(rig: DashboardRig) -> None:
    key = rig.app.sign_in.make_link()
    visitor = Visitor(rig)
    for _ in range(2):
        assert visitor.get(f"/sign-in/link?key={key}").status_code == 200  # looking uses nothing up
    short = visitor.ask(
        "POST", "/sign-in/link", {"key": key, "make": "1", "name": "Ada", "password": "short"}
    )
    assert (short.status_code, "at least 12 characters" in short.text) == (400, True)
    done = visitor.ask(
        "POST", "/sign-in/link", {"key": key, "make": "1", "name": "Ada", "password": PASSWORD}
    )
    assert (done.status_code, done.headers["location"]) == (303, "/rooms")
    assert is_in(visitor)
    made = accounts.find(rig.store.read(), "ada")
    assert made is not None
    assert (made.role, made.password_hash[:9]) == ("admin", "$argon2id")
    again = Visitor(rig)
    assert again.get(f"/sign-in/link?key={key}").status_code == 401
    assert (
        again.ask(
            "POST", "/sign-in/link", {"key": key, "make": "1", "name": "eve", "password": PASSWORD}
        ).status_code
        == 401
    )
    assert not is_in(again)
    assert next(iter(accounts.every(rig.store.read()))).record.name == "ada"


def test_two_browsers_with_one_link_at_once_get_one_session(rig: DashboardRig) -> None:
    key = rig.app.sign_in.make_link()
    first, second = Visitor(rig), Visitor(rig)
    assert [
        one.ask("POST", "/sign-in/link", {"key": key}).status_code for one in (first, second)
    ] == [303, 401]


def test_a_link_ends_after_a_day_and_with_an_account_makes_no_second_admin_by_form(
    rig: DashboardRig,
) -> None:
    key = rig.app.sign_in.make_link()
    rig.clock.at_ms += LINK_MS
    assert Visitor(rig).ask("POST", "/sign-in/link", {"key": key}).status_code == 401
    rig.add_account("ada", "admin")
    key = rig.app.sign_in.make_link()
    Visitor(rig).ask(
        "POST", "/sign-in/link", {"key": key, "make": "1", "name": "eve", "password": PASSWORD}
    )
    assert accounts.find(rig.store.read(), "eve") is None


def test_a_password_lets_in_and_a_wrong_one_does_not(rig: DashboardRig) -> None:
    rig.add_account("ada", "operator")
    wrong = Visitor(rig)
    refusals = [
        wrong.sign_in("ada", "something else entirely"),
        wrong.sign_in("eve", PASSWORD),
        wrong.sign_in("ada", "x" * 300),
    ]
    assert [answer.status_code for answer in refusals] == [401, 401, 401]
    assert (
        len({re.sub(r'value="[^"]*"', "", answer.text) for answer in refusals}) == 1
    )  # the answer does not say which was wrong
    right = Visitor(rig)
    assert right.sign_in(" Ada ").status_code == 303
    assert is_in(right)


def test_tokens_sign_in_with_what_they_may_do(rig: DashboardRig) -> None:
    for scope, works in (("read", True), ("edit", True), ("analytics", False), ("probe", False)):
        secret, _ = rig.config.change("test", tokens.create(scope, [scope]))
        visitor = Visitor(rig)
        assert visitor.ask("POST", "/sign-in", {"token": secret}).status_code == (
            303 if works else 401
        )
        assert is_in(visitor) is works
        assert visitor.get("/zones/new").status_code == (
            200 if scope == "edit" else 403 if works else 303
        )
        if works:
            rig.config.change("test", tokens.revoke(scope))
            assert not is_in(visitor)


def test_the_cookie_is_out_of_reach_of_scripts_and_bound_to_the_path(rig: DashboardRig) -> None:
    rig.add_account("ada")
    plain = Visitor(rig).sign_in("ada").headers.get_list("set-cookie")
    assert all(
        "HttpOnly" in line and "Path=/;" in f"{line};" and "Secure" not in line for line in plain
    )
    assert any("samesite=lax" in line.lower() for line in plain if "greenroom_session" in line)
    encrypted = (
        Visitor(rig, address="192.0.2.7", base="https://testserver")
        .sign_in("ada")
        .headers.get_list("set-cookie")
    )
    assert all("Secure" in line for line in encrypted)
    assert all(line.startswith("__Host-") and "Path=/;" in f"{line};" for line in encrypted)


def test_over_tls_a_session_counts_only_under_the_name_that_no_neighbour_can_set(
    rig: DashboardRig,
) -> None:
    rig.add_account("ada")
    visitor = Visitor(rig, address="192.0.2.7", base="https://testserver")
    visitor.sign_in("ada")
    secret = visitor.cookies["__Host-greenroom_session"]
    assert is_in(visitor)
    planted = Visitor(rig, {"greenroom_session": secret}, "192.0.2.7", "https://testserver")
    assert not is_in(planted)
    gone = visitor.post("/sign-out").headers.get_list("set-cookie")
    assert any(
        line.startswith("__Host-greenroom_session=") and "Max-Age=0" in line and "Secure" in line
        for line in gone
    )
    assert not is_in(visitor)


def test_a_session_gets_a_new_secret_at_sign_in_and_the_old_one_ends(rig: DashboardRig) -> None:
    rig.add_account("ada")
    visitor = Visitor(rig, {"greenroom_session": "planted by a stranger"})
    visitor.sign_in("ada")
    first = visitor.cookies["greenroom_session"]
    assert first != "planted by a stranger"
    visitor.sign_in("ada")
    assert visitor.cookies["greenroom_session"] != first
    assert not is_in(Visitor(rig, {"greenroom_session": first}))
    assert len(rig.store.sessions.rows(SESSION)) == 1
    assert first not in str(rig.store.sessions.rows(SESSION))


@pytest.mark.parametrize(
    "what", ["signed out", "idle", "too long", "removed", "new password", "ended by an admin"]
)
def test_what_ends_a_session(rig: DashboardRig, what: str) -> None:
    rig.add_account("boss", "admin")
    rig.add_account("ada", "operator")
    visitor = Visitor(rig)
    visitor.sign_in("ada")
    assert is_in(visitor)
    assert found_together(rig, visitor) == [True, False]
    if what == "signed out":
        kept = dict(visitor.cookies)
        visitor.post("/sign-out")
        visitor.cookies = kept
    elif what == "idle":
        rig.clock.at_ms += IDLE_MS
    elif what == "too long":
        for _ in range(LONGEST_MS // (IDLE_MS // 2)):
            assert is_in(visitor)
            rig.clock.at_ms += IDLE_MS // 2
    elif what == "removed":
        rig.config.change("test", accounts.remove("ada"))
    elif what == "new password":
        rig.config.change("test", accounts.edit("ada", password="another long password"))
    else:
        rig.store.sessions.remove(SESSION, rig.store.sessions.rows(SESSION)[0].id)
    assert found_together(rig, visitor) == [False, False]
    assert not is_in(visitor)


def test_a_changed_role_counts_at_once(rig: DashboardRig) -> None:
    rig.add_account("ada", "viewer")
    visitor = Visitor(rig)
    visitor.sign_in("ada")
    assert visitor.get("/zones/new").status_code == 403
    rig.config.change("test", accounts.edit("ada", role="operator"))
    assert visitor.get("/zones/new").status_code == 200


def test_guessing_is_limited_by_address_and_by_account(rig: DashboardRig) -> None:
    rig.add_account("ada")
    one = Visitor(rig, address="127.0.0.9")
    for number in range(FAILURES_MAX):
        assert one.sign_in(f"nobody{number}", "wrong").status_code == 401
    assert one.sign_in("ada").status_code == 429
    assert Visitor(rig).sign_in("ada").status_code == 303
    for number in range(FAILURES_MAX):
        Visitor(rig, address=f"127.0.1.{number}").sign_in("ada", "wrong")
    assert Visitor(rig, address="127.0.2.1").sign_in("ada").status_code == 429
    rig.clock.at_ms += FAILURES_MS
    assert Visitor(rig, address="127.0.2.1").sign_in("ada").status_code == 303


def test_wrong_passwords_count_in_all_processes_together_and_over_a_restart(
    rig: DashboardRig,
) -> None:
    rig.add_account("ada")
    with dashboard_in(rig.folder) as other:
        for number in range(FAILURES_MAX):
            Visitor(rig if number % 2 else other, address=f"127.0.1.{number}").sign_in(
                "ada", "wrong"
            )
        assert [
            Visitor(one, address="127.0.2.1").sign_in("ada").status_code for one in (rig, other)
        ] == [429, 429]
    with dashboard_in(rig.folder) as again:
        assert Visitor(again, address="127.0.2.1").sign_in("ada").status_code == 429


def test_the_addresses_of_one_network_guess_together(rig: DashboardRig) -> None:
    rig.add_account("ada")

    def at(address: str) -> Visitor:
        return Visitor(rig, address=address, base="https://testserver")

    for number in range(FAILURES_MAX):
        assert at(f"2001:db8::{number:x}").sign_in(f"nobody{number}", "wrong").status_code == 401
    assert at("2001:db8::ffff").sign_in("ada").status_code == 429
    assert at("2001:db8:0:1::1").sign_in("ada").status_code == 303


def test_strangers_cannot_lock_out_a_browser_in_which_the_account_has_signed_in(
    rig: DashboardRig,
) -> None:
    rig.add_account("ada")
    mine = Visitor(rig)
    mine.sign_in("ada")
    del mine.cookies["greenroom_session"]
    for number in range(FAILURES_MAX):
        Visitor(rig, address=f"127.0.1.{number}").sign_in("ada", "wrong")
        Visitor(rig).sign_in("ada", "wrong")  # even from the same address
    assert Visitor(rig, address="127.0.2.1").sign_in("ada").status_code == 429
    assert mine.sign_in("ada").status_code == 303
    rig.add_account("eve")
    assert (
        Visitor(rig, {"greenroom_device": mine.cookies["greenroom_device"]}, "127.0.2.9")
        .sign_in("eve", "wrong")
        .status_code
        == 401
    )


def test_links_are_limited_by_address(rig: DashboardRig) -> None:
    visitor = Visitor(rig)
    key = rig.app.sign_in.make_link()
    for number in range(FAILURES_MAX):
        visitor.sign_in(f"n{number}", "wrong")
    assert visitor.ask("POST", "/sign-in/link", {"key": key}).status_code == 400
    assert rig.store.sessions.rows(LINK)


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "",
        "/sign-out",
        "/a\nb",
    ],
)
def test_signing_in_never_leads_elsewhere(rig: DashboardRig, path: str) -> None:
    assert safe_path(path) == "/rooms"
    rig.add_account("ada")
    answer = Visitor(rig).ask(
        "POST", "/sign-in", {"name": "ada", "password": PASSWORD, "next": path}
    )
    assert answer.headers["location"] == "/rooms"


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [("/rooms?q=shop", "/rooms?q=shop"), ("/rooms?q=магазин", "/rooms?q=" + quote("магазин"))],
)
def test_signing_in_leads_to_the_page_that_was_asked_for_in_any_script_also_when_it_is_done_already(
    rig: DashboardRig, wanted: str, sent: str
) -> None:
    rig.add_account("ada")
    visitor = Visitor(rig)
    done = visitor.ask("POST", "/sign-in", {"name": "ada", "password": PASSWORD, "next": wanted})
    assert (done.status_code, done.headers["location"], is_in(visitor)) == (303, sent, True)
    again = visitor.get(f"/sign-in?next={quote(wanted)}")
    assert (again.status_code, again.headers["location"]) == (303, sent)


def test_passwords_cross_no_network_in_plain_text(rig: DashboardRig) -> None:
    rig.add_account("ada")
    for visitor in (Visitor(rig, address="192.0.2.7"), Visitor(rig, address="")):
        assert visitor.get("/sign-in").status_code == 403
        assert visitor.sign_in("ada").status_code == 403
        assert "greenroom_session" not in visitor.cookies
    assert (
        Visitor(rig).get("/sign-in", **{"X-Forwarded-For": "192.0.2.7"}).status_code == 403
    )  # through a proxy that is not trusted
    assert (
        Visitor(rig, address="192.0.2.7", base="https://testserver").sign_in("ada").status_code
        == 303
    )


def test_the_last_admin_stays_and_zones_must_exist(rig: DashboardRig) -> None:
    rig.add_account("ada", "admin")
    admin = rig.person("admin")
    ada = accounts.find(rig.store.read(), "ada")
    rig.config.change("test", accounts.remove("ada"))
    assert ada is not None
    own = accounts.find(rig.store.read(), "admin-all")
    assert own is not None
    assert "only admin" in admin.post(f"/accounts/{own.id}/edit", role="viewer").text
    assert "only admin" in admin.post(f"/accounts/{own.id}/remove").text
    refused = admin.post(
        "/accounts/new", name="bad name", role="operator", zone="nowhere", password="short"
    )
    assert refused.status_code == 400
    for said in ("must have only lower-case letters", "no zone nowhere", "at least 12"):
        assert said in refused.text


def test_a_form_without_a_ticked_zone_leaves_an_account_its_zones(rig: DashboardRig) -> None:
    rig.fill()
    rig.add_account("bob", "viewer", "z1")
    admin = rig.person("admin")

    def save(*zones: str) -> tuple[str, ...]:
        bob = accounts.find(rig.store.read(), "bob")
        assert bob is not None
        assert (
            admin.post(f"/accounts/{bob.id}/edit", role="operator", zone=list(zones)).status_code
            == 303
        )
        saved = accounts.find(rig.store.read(), "bob")
        assert saved is not None
        return saved.zone_ids

    assert save() == ("z1",)  # as when z1 was removed and has no box
    assert save("z2") == ("z2",)
    assert save("*", "z1") == ("z1",)
    assert save("*") == ()
    assert save() == ()


def test_a_person_changes_the_own_password_and_keeps_this_browser_only(rig: DashboardRig) -> None:
    rig.add_account("ada")
    here, there = Visitor(rig), Visitor(rig)
    here.sign_in("ada")
    there.sign_in("ada")
    assert (
        "is not your password"
        in here.post("/account/password", old="wrong", password="another long password").text
    )
    assert (
        here.post("/account/password", old=PASSWORD, password="another long password").status_code
        == 303
    )
    assert (is_in(here), is_in(there)) == (True, False)
    assert Visitor(rig).sign_in("ada").status_code == 401
    assert Visitor(rig).sign_in("ada", "another long password").status_code == 303
