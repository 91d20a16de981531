"""What Set-Cookie says, attribute by attribute."""

from email.utils import formatdate, parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.decision.cookies import TAILS_MAX, CookieWriter, http_date
from greenroom.model.room import Room
from greenroom.model.route import CookieAttributes

NOW = 1_700_000_000_000
SEALED = b"s" * 100


def room(
    host: str = "shop.example.com",
    path: str = "/x",
    suffix: str = "",
    samesite: str = "auto",
    secure: str = "auto",
) -> Room:
    marked = CookieAttributes(samesite, secure)
    return Room(
        id="a",
        name="a",
        host=host,
        path=path,
        cookie_suffix=suffix,
        cookie_attributes=marked,
        total_active_users=1,
        new_users_per_minute=1,
    )


def attributes(cookie: bytes) -> dict[str, str]:
    parts = [part.partition("=") for part in cookie.decode().split("; ")[1:]]
    assert len({name for name, _, _ in parts}) == len(parts)
    return {name: value for name, _, value in parts}


def test_the_whole_cookie() -> None:
    assert CookieWriter(room(), False).set(SEALED, 300, NOW + 999) == (
        b"__cfwaitingroom="
        + SEALED
        + b"; Domain=shop.example.com; Path=/x; HttpOnly; SameSite=Lax; Max-Age=300; Expires=Tue, 14 Nov 2023 22:18:20 GMT"
    )


def test_the_suffix_is_part_of_the_name() -> None:
    assert (
        CookieWriter(room(suffix="sale"), False)
        .set(SEALED, 1, NOW)
        .startswith(b"__cfwaitingroom_sale=sss")
    )


def test_without_a_domain_there_is_no_domain_attribute() -> None:
    for host in ("*", "localhost", "127.0.0.1"):
        assert "Domain" not in attributes(CookieWriter(room(host=host), False).set(SEALED, 1, NOW))


@pytest.mark.parametrize(
    ("samesite", "secure", "https", "expected"),
    [
        ("auto", "auto", False, {"SameSite": "Lax"}),
        ("auto", "auto", True, {"SameSite": "None", "Secure": "", "Partitioned": ""}),
        ("auto", "always", False, {"SameSite": "Lax", "Secure": ""}),
        ("auto", "always", True, {"SameSite": "None", "Secure": "", "Partitioned": ""}),
        ("auto", "never", False, {"SameSite": "Lax"}),
        ("auto", "never", True, {"SameSite": "Lax"}),
        ("lax", "auto", False, {"SameSite": "Lax"}),
        ("lax", "auto", True, {"SameSite": "Lax", "Secure": ""}),
        ("lax", "never", True, {"SameSite": "Lax"}),
        ("strict", "auto", True, {"SameSite": "Strict", "Secure": ""}),
        ("strict", "always", False, {"SameSite": "Strict", "Secure": ""}),
        ("none", "auto", True, {"SameSite": "None", "Secure": "", "Partitioned": ""}),
        ("none", "auto", False, {"SameSite": "None", "Secure": "", "Partitioned": ""}),
        ("none", "always", False, {"SameSite": "None", "Secure": "", "Partitioned": ""}),
    ],
)
def test_samesite_secure_and_partitioned(
    samesite: str, secure: str, https: bool, expected: dict[str, str]
) -> None:
    """SameSite=None without Secure is dropped by every browser, so it never comes without."""
    writer = CookieWriter(room(samesite=samesite, secure=secure), https)
    for cookie in (writer.set(SEALED, 300, NOW), writer.expire()):
        found = attributes(cookie)
        assert {
            name: found[name] for name in ("SameSite", "Secure", "Partitioned") if name in found
        } == expected
        assert found["HttpOnly"] == ""


def test_an_expired_cookie_has_the_same_place_and_no_value() -> None:
    writer = CookieWriter(room(), True)
    gone, there = attributes(writer.expire()), attributes(writer.set(SEALED, 300, NOW))
    assert writer.expire().startswith(b"__cfwaitingroom=; ")
    assert gone.pop("Max-Age") == "0"
    assert gone.pop("Expires") == "Thu, 01 Jan 1970 00:00:00 GMT"
    del there["Max-Age"], there["Expires"]
    assert gone == there


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 1_900)), min_size=1, max_size=30))
def test_the_times_are_right_in_every_second_and_for_every_age(
    steps: list[tuple[int, int]],
) -> None:
    writer, now_ms = CookieWriter(room(), False), NOW
    for passed_ms, max_age_s in steps:
        now_ms += passed_ms
        found = attributes(writer.set(SEALED, max_age_s, now_ms))
        assert found["Max-Age"] == str(max_age_s)
        assert parsedate_to_datetime(found["Expires"]).timestamp() == now_ms // 1000 + max_age_s


def test_ready_made_endings_do_not_pile_up() -> None:
    writer = CookieWriter(room(), False)
    for max_age_s in range(2 * TAILS_MAX):
        writer.set(SEALED, max_age_s, NOW)
    assert len(writer._tails) <= TAILS_MAX + 1


@given(st.integers(0, 253_402_300_799))
def test_a_date_is_what_the_standard_library_says(second: int) -> None:
    assert http_date(second).decode() == formatdate(second, usegmt=True)
