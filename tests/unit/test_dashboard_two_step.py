"""Two-step sign-in of local accounts: codes of RFC 6238, each of which counts once, recovery codes,
and what guessing gains.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from dashboard_rig import PASSWORD, DashboardRig, Visitor, dashboard_in

from greenroom.accounts import people as accounts
from greenroom.accounts.sign_in import SECOND_MS
from greenroom.accounts.two_step import (
    STEP_MS,
    TRIES,
    TRIES_MS,
    totp_code,
    totp_step,
    totp_uri,
)
from greenroom.configuration.store import SqlStore, default_url
from greenroom.keys.sealed_secrets import SECRETS_FILE
from greenroom.model.account import RECOVERY_CODES, Account
from greenroom.model.change import Put

RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # "12345678901234567890", RFC 6238 appendix B


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_the_rfc(seconds: int, code: str) -> None:
    assert totp_code(RFC_SECRET, seconds // 30) == code
    for away, counts in (
        (-60_000, False),
        (-30_000, True),
        (0, True),
        (30_000, True),
        (60_000, False),
    ):
        assert (totp_step(RFC_SECRET, code, seconds * 1000 + away) is not None) is counts


@pytest.mark.parametrize("written", ["", "28708", "2870820", "٢٨٧٠٨٢", "287082 ", "\x00", "é" * 6])
def test_what_is_no_code_is_no_code(written: str) -> None:
    assert totp_step(RFC_SECRET, written, 59_000) is None


def test_the_picture_holds_the_name_and_the_secret() -> None:
    assert totp_uri(RFC_SECRET, "a&b@c?") == (
        f"otpauth://totp/greenroom:a%26b%40c%3F?secret={RFC_SECRET}&issuer=greenroom&algorithm=SHA1&digits=6&period=30"
    )


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.add_account("ada", "operator")
        yield found


def is_in(visitor: Visitor) -> bool:
    return visitor.get("/rooms").status_code == 200


def account(rig: DashboardRig) -> Account:
    found = accounts.find(rig.store.read(), "ada")
    assert found is not None
    return found


def stored(rig: DashboardRig, name: str) -> str:
    """The secret of an account's app as it lies in the database."""
    store = SqlStore(default_url(rig.folder))
    found = accounts.find(store.read(), name)
    store.close()
    assert found is not None
    return found.totp_secret


def lay_down(rig: DashboardRig, name: str, secret: str) -> None:
    """Puts a secret into the database as it is, as an older greenroom or a hand in the database
    could.
    """
    store = SqlStore(default_url(rig.folder))
    known = store.read()
    found = accounts.find(known, name)
    assert found is not None
    store.write(
        [Put(replace(found, totp_secret=secret))],
        expected=known.revision,
        author="test",
        now_ms=rig.clock.at_ms,
    )
    store.close()


def turned_on(rig: DashboardRig) -> tuple[Visitor, str, list[str]]:
    """Ada's browser, in which she turned it on; the secret and the recovery codes that she was
    shown.
    """
    visitor = Visitor(rig)
    visitor.sign_in("ada")
    page = visitor.get("/account/two-step").text
    seed, secret = (
        re.findall(r'name="seed" value="([^"]*)"', page)[0],
        re.findall(r"<code>([A-Z2-7]{32})</code>", page)[0],
    )
    recovery = re.findall(r"<li><code>([a-z2-7-]{19})</code>", page)
    assert 'src="data:image/svg+xml' in page
    assert "<svg" in unquote(page)
    done = visitor.post("/account/two-step", seed=seed, code=code(rig, secret), old=PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, "/account?notice=saved"), done.text
    rig.clock.at_ms += STEP_MS
    return visitor, secret, recovery


def code(rig: DashboardRig, secret: str, away: int = 0) -> str:
    return totp_code(secret, rig.clock.at_ms // STEP_MS + away)


def password_step(visitor: Visitor) -> str:
    """After the right password: what the code has to be sent with."""
    answer = visitor.sign_in("ada")
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    return re.findall(r'name="second" value="([^"]*)"', answer.text)[0]


def code_step(visitor: Visitor, second: str, written: str, after: str = "") -> httpx.Response:
    return visitor.ask("POST", "/sign-in/code", {"second": second, "code": written, "next": after})


def test_the_password_alone_is_not_enough_any_more_and_a_code_is(rig: DashboardRig) -> None:
    there = Visitor(rig)
    there.sign_in("ada")
    here, secret, recovery = turned_on(rig)
    assert (is_in(here), is_in(there)) == (True, False)
    assert secret not in rig.store.audit(10)[0].__repr__()
    assert account(rig).two_step_since_ms == rig.clock.at_ms - STEP_MS
    assert len(set(recovery)) == len(account(rig).recovery_sha256) == RECOVERY_CODES
    visitor = Visitor(rig)
    second = password_step(visitor)
    assert not is_in(visitor)
    assert not is_in(Visitor(rig, {"greenroom_session": second}))
    done = code_step(
        visitor, second, f" {code(rig, secret)[:3]} {code(rig, secret)[3:]} ", "/rooms?q=a"
    )
    assert (done.status_code, done.headers["location"]) == (303, "/rooms?q=a")
    assert is_in(visitor)


def test_a_code_counts_once_whoever_sends_it(rig: DashboardRig) -> None:
    _, secret, _ = turned_on(rig)
    first, other = Visitor(rig), Visitor(rig)
    seconds = [password_step(first), password_step(other)]
    for away in (-1, 0, 1):
        used = code(rig, secret, away)
        again = password_step(first)
        assert code_step(first, again, used).status_code == (
            401 if away == -1 else 303
        )  # that of the step before turned it on
        refused = code_step(other, seconds[1], used)
        assert (refused.status_code, "has been used" in refused.text) == (401, True)
    assert not is_in(other)
    rig.clock.at_ms += 2 * STEP_MS
    assert code_step(other, seconds[1], code(rig, secret)).status_code == 303
    assert (
        code_step(other, seconds[1], code(rig, secret, 1)).status_code == 401
    )  # the sign-in itself is used up too


def test_recovery_codes_count_once_each_and_are_not_kept(rig: DashboardRig) -> None:
    _, _, recovery = turned_on(rig)
    assert all(one.replace("-", "") not in repr(rig.store.read().accounts) for one in recovery)
    visitor = Visitor(rig)
    assert code_step(visitor, password_step(visitor), recovery[3].upper()).status_code == 303
    assert is_in(visitor)
    assert len(account(rig).recovery_sha256) == RECOVERY_CODES - 1
    assert rig.store.audit(1)[0].author == "ada (recovery code, dashboard)"
    again = Visitor(rig)
    assert code_step(again, password_step(again), recovery[3]).status_code == 401
    assert code_step(again, password_step(again), recovery[4].replace("-", "")).status_code == 303
    assert "8 recovery codes" in again.get("/account").text


def test_guessing_codes_is_limited_and_cannot_lock_out_a_known_browser(rig: DashboardRig) -> None:
    mine, secret, _ = turned_on(rig)
    del mine.cookies["greenroom_session"]
    stolen = password_step(Visitor(rig))
    for number in range(TRIES):
        assert (
            code_step(Visitor(rig, address=f"127.0.3.{number}"), stolen, "000000").status_code
            == 401
        )
    thief = Visitor(rig, address="127.0.3.200")
    refused = code_step(thief, stolen, code(rig, secret))
    assert (refused.status_code, "too many wrong codes" in refused.text) == (429, True)
    assert code_step(mine, password_step(mine), code(rig, secret)).status_code == 303
    rig.clock.at_ms += TRIES_MS
    assert code_step(thief, password_step(thief), code(rig, secret)).status_code == 303


def test_the_second_step_has_its_time_and_belongs_to_the_password(rig: DashboardRig) -> None:
    _, secret, _ = turned_on(rig)
    visitor = Visitor(rig)
    late = password_step(visitor)
    rig.clock.at_ms += SECOND_MS
    assert "took too long" in code_step(visitor, late, code(rig, secret)).text
    old = password_step(visitor)
    rig.config.change("test", accounts.edit("ada", password="another long password"))
    assert code_step(visitor, old, code(rig, secret)).status_code == 401
    assert code_step(visitor, "made up", code(rig, secret)).status_code == 401
    assert not is_in(visitor)


def test_turning_it_on_needs_the_password_and_a_right_code_and_what_was_shown(
    rig: DashboardRig,
) -> None:
    visitor = Visitor(rig)
    visitor.sign_in("ada")
    page = visitor.get("/account/two-step").text
    seed, secret = (
        re.findall(r'name="seed" value="([^"]*)"', page)[0],
        re.findall(r"<code>([A-Z2-7]{32})</code>", page)[0],
    )
    for form in (
        {"seed": seed, "code": code(rig, secret), "old": "wrong"},
        {"seed": seed, "code": "000000", "old": PASSWORD},
        {"seed": "another", "code": code(rig, secret), "old": PASSWORD},
    ):
        refused = visitor.post("/account/two-step", **form)
        assert refused.status_code in (400, 401)
    assert (
        secret in visitor.post("/account/two-step", seed=seed, code="000000", old=PASSWORD).text
    )  # the phone has it already
    assert account(rig).totp_secret == ""
    assert (
        visitor.post(
            "/account/two-step", seed=seed, code=code(rig, secret), old=PASSWORD
        ).status_code
        == 303
    )
    assert account(rig).totp_secret == secret
    again = visitor.get("/account/two-step").text
    assert secret not in again
    assert visitor.post("/account/two-step", seed="x", code="1", old=PASSWORD).status_code in (
        400,
        401,
    )
    assert account(rig).totp_secret == secret


def test_it_is_turned_off_with_the_password_or_by_an_admin(rig: DashboardRig) -> None:
    visitor, _, _ = turned_on(rig)
    assert visitor.post("/account/two-step/off", old="wrong").status_code == 400
    assert account(rig).totp_secret
    assert visitor.post("/account/two-step/off", old=PASSWORD).status_code == 303
    assert (is_in(visitor), Visitor(rig).sign_in("ada").status_code) == (True, 303)
    turned_on(rig)
    admin = rig.person("admin")
    assert "Turn off two-step sign-in" in admin.get(f"/accounts/{account(rig).id}/edit").text
    assert visitor.post(f"/accounts/{account(rig).id}/reset-two-step").status_code in (303, 403)
    assert account(rig).totp_secret
    assert admin.post(f"/accounts/{account(rig).id}/reset-two-step").status_code == 303
    assert Visitor(rig).sign_in("ada").status_code == 303


def test_guesses_of_the_own_password_in_a_stolen_session_are_limited(rig: DashboardRig) -> None:
    visitor = rig.person("viewer")
    answers = [
        visitor.post("/account/two-step/off", old="x" * 300).status_code for _ in range(21)
    ]  # no hash is computed for these
    assert answers[-1] == 429
    assert (
        visitor.post(
            "/account/password", old=PASSWORD, password="another long password"
        ).status_code
        == 429
    )


def test_people_without_a_local_account_have_nothing_to_turn_on(rig: DashboardRig) -> None:
    key = rig.app.sign_in.make_link()
    visitor = Visitor(rig)
    visitor.ask("POST", "/sign-in/link", {"key": key})
    for answer in (
        visitor.get("/account/two-step"),
        visitor.post("/account/two-step"),
        visitor.post("/account/two-step/off"),
    ):
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")


def test_a_copy_of_the_store_gives_no_secret_away(rig: DashboardRig) -> None:
    _, secret, _ = turned_on(rig)
    assert (stored(rig, "ada")[:7], account(rig).totp_secret) == ("sealed:", secret)
    assert all(secret.encode() not in path.read_bytes() for path in rig.folder.glob("config.db*"))


def test_secrets_of_an_older_greenroom_count_and_are_sealed_without_ending_a_session(
    rig: DashboardRig,
) -> None:
    here, secret, _ = turned_on(rig)
    lay_down(rig, "ada", secret)
    visitor = Visitor(rig)
    assert code_step(visitor, password_step(visitor), code(rig, secret)).status_code == 303
    revision = rig.store.revision()
    assert [rig.store.seal_stored() for _ in range(2)] == [(1, 0), (0, 0)]
    assert (stored(rig, "ada")[:7], rig.store.revision()) == ("sealed:", revision)
    assert (is_in(here), is_in(visitor)) == (True, True)
    rig.clock.at_ms += STEP_MS
    assert code_step(visitor, password_step(visitor), code(rig, secret)).status_code == 303


def test_without_the_key_codes_count_no_more_and_recovery_codes_do(rig: DashboardRig) -> None:
    _, secret, recovery = turned_on(rig)
    (rig.folder / SECRETS_FILE).rename(rig.folder / "elsewhere")
    with dashboard_in(rig.folder) as restarted:
        restarted.clock.at_ms = rig.clock.at_ms
        without_the_key(restarted, secret, recovery)


def without_the_key(rig: DashboardRig, secret: str, recovery: list[str]) -> None:
    visitor = Visitor(rig)
    refused = code_step(visitor, password_step(visitor), code(rig, secret))
    assert (refused.status_code, "cannot be read on this machine" in refused.text) == (401, True)
    assert code_step(visitor, password_step(visitor), recovery[0]).status_code == 303
    rig.config.change("test", accounts.turn_off_two_step("ada"))
    assert Visitor(rig).sign_in("ada").status_code == 303


def test_a_sealed_secret_put_into_another_account_opens_nothing_there(rig: DashboardRig) -> None:
    _, secret, _ = turned_on(rig)
    rig.add_account("eve")
    lay_down(rig, "eve", stored(rig, "ada"))
    visitor = Visitor(rig)
    second = re.findall(r'name="second" value="([^"]*)"', visitor.sign_in("eve").text)[0]
    assert code_step(visitor, second, code(rig, secret)).status_code == 401


def test_wrong_codes_count_in_all_processes_together(rig: DashboardRig) -> None:
    _, secret, _ = turned_on(rig)
    stolen = password_step(Visitor(rig))
    with dashboard_in(rig.folder) as other:
        other.clock.at_ms = rig.clock.at_ms
        for number in range(TRIES):
            one = rig if number % 2 else other
            assert (
                code_step(Visitor(one, address=f"127.0.3.{number}"), stolen, "000000").status_code
                == 401
            )
        for one in (rig, other):
            assert (
                code_step(
                    Visitor(one, address="127.0.3.200"), stolen, code(rig, secret)
                ).status_code
                == 429
            )
