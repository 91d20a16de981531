"""Guesses made at once: no more of them are judged than the limit, per account and per address, in
all processes together.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from dashboard_rig import PASSWORD, DashboardRig, dashboard_in

from greenroom.accounts import people as accounts
from greenroom.accounts.sign_in import BrowserFacts, SecondStep
from greenroom.accounts.two_step import TRIES
from greenroom.database import engine
from greenroom.web.authenticator import (
    FAILURES_MAX,
    Authenticator,
    Credentials,
    StoredFailures,
    make_token,
)
from greenroom.web.refusals import Refused

AT_ONCE = 60


@pytest.fixture
def two(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[DashboardRig, DashboardRig]]:
    """Two processes' worth of one installation."""
    monkeypatch.setattr(engine, "BUSY_S", 60)  # SQLite serves sixty threads in no order
    with (
        dashboard_in(tmp_path, url) as one,
        dashboard_in(tmp_path, url) as other,
    ):
        one.add_account("ada")
        yield one, other


def statuses(guess: Callable[[int], object]) -> list[int]:
    """The status of each of AT_ONCE guesses."""
    together = Barrier(AT_ONCE)

    def one(number: int) -> int:
        together.wait()
        try:
            guess(number)
        except Refused as refused:
            return refused.status
        return 200

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(AT_ONCE)))


def test_passwords_of_one_address(two: tuple[DashboardRig, DashboardRig]) -> None:
    known = two[0].store.read()
    found = statuses(
        lambda number: two[number % 2].app.sign_in.with_password(
            known, f"nobody{number}", "wrong", BrowserFacts("192.0.2.1")
        )
    )
    assert found.count(401) == FAILURES_MAX
    assert found.count(429) == AT_ONCE - FAILURES_MAX


def test_passwords_of_one_account(two: tuple[DashboardRig, DashboardRig]) -> None:
    known = two[0].store.read()
    found = statuses(
        lambda number: two[number % 2].app.sign_in.with_password(
            known, "ada", "wrong", BrowserFacts(f"192.0.2.{number}")
        )
    )
    assert found.count(401) == FAILURES_MAX


def test_codes_of_one_account(two: tuple[DashboardRig, DashboardRig]) -> None:
    one = two[0]
    ada = accounts.find(one.store.read(), "ada")
    assert ada is not None
    one.config.change("test", accounts.turn_on_two_step(ada.id, "A" * 32, ["0" * 64]))
    known = one.store.read()
    step = one.app.sign_in.with_password(known, "ada", PASSWORD, BrowserFacts("192.0.2.1"))
    assert isinstance(step, SecondStep)
    found = statuses(
        lambda number: two[number % 2].app.sign_in.with_code(
            known, step.secret, "wrong", BrowserFacts(f"192.0.3.{number}")
        )
    )
    assert found.count(401) == TRIES


def test_tokens_of_one_address(two: tuple[DashboardRig, DashboardRig]) -> None:
    authenticators = [Authenticator(rig.store, rig.clock, rig.store.sessions) for rig in two]
    found = statuses(
        lambda number: authenticators[number % 2].open(Credentials(f"wrong{number}"), "192.0.2.1")
    )
    assert found.count(401) == FAILURES_MAX


def test_a_good_token_is_never_refused_however_many_requests_begin_with_it(
    two: tuple[DashboardRig, DashboardRig],
) -> None:
    secret, token = make_token("t1", "a program", ("read",))
    two[0].put((token, ""))
    authenticators = [Authenticator(rig.store, rig.clock, rig.store.sessions) for rig in two]
    found = statuses(
        lambda number: authenticators[number % 2].open(Credentials(secret), "192.0.2.1")
    )
    assert found == [200] * AT_ONCE


def test_a_right_attempt_is_taken_back_and_only_in_its_own_time(
    two: tuple[DashboardRig, DashboardRig],
) -> None:
    rig = two[0]
    failures = StoredFailures(rig.store.sessions, rig.clock, "test", 2, 1_000)
    for _ in range(5):
        with failures.attempt("a", refusal=ValueError):
            pass
    began_ms = rig.clock.at_ms
    assert failures.reserve("a") == 0
    rig.clock.at_ms += 1_000
    assert [failures.reserve("a"), failures.reserve("a")] == [0, 0]
    failures.release("a", began_ms)
    assert failures.reserve("a") == 1
