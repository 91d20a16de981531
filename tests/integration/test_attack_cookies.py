"""Cookie abuse: huge, many, malformed, repeated, stolen and made-up cookies are a new visitor at
worst, and never an error.
"""

import re
import time
from collections.abc import Iterator

import pytest
from attack_rig import Got, NotingOrigin, throw
from tests.conftest import Running, StartGreenroom

CONFIG = """
origin = "{url}"
[[rooms]]
name = "full"
host = "full.example"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
[[rooms]]
name = "other"
host = "other.example"
total_active_users = 1000
new_users_per_minute = 100000
[[rooms]]
name = "single"
host = "single.example"
total_active_users = 1
new_users_per_minute = 1
[[rooms]]
name = "open"
host = "open.example"
total_active_users = 100000
new_users_per_minute = 100000
"""
NAME = "__cfwaitingroom"
DEAR_S = 1.0
"""Of CPU, so that a busy machine makes no request dear."""


class Target:
    def __init__(self, running: Running, origin: NotingOrigin) -> None:
        self.running, self.origin = running, origin
        self.inside = ""  # the ticket of the only one in the room `single`

    def ask(
        self, cookies: bytes | str = b"", host: str = "open.example", lines: bytes = b""
    ) -> Got:
        """One request with this Cookie header; it must cost little, and be answered not with an
        error of greenroom.
        """
        value = cookies.encode("latin-1") if isinstance(cookies, str) else cookies
        head = f"GET / HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n".encode() + (
            b"Cookie: " + value + b"\r\n" if value else b""
        )
        before_s = self.running.cpu_s
        (got,) = throw(self.running.address, head + lines + b"\r\n")
        assert got.status < 500
        assert self.running.cpu_s - before_s < DEAR_S
        return got

    def ticket(self, host: str = "open.example") -> str:
        """A ticket that was really given."""
        return ticket_in(self.ask(host=host))

    def waiting(self, room: str) -> int:
        return self.running.room(room)["waiting_users"]


def ticket_in(got: Got) -> str:
    found = re.search(rf"\r\nSet-Cookie: {NAME}=([^;\r]+)", got.head, re.IGNORECASE)
    assert found, got.head
    return found[1]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    origin = NotingOrigin()
    running = StartGreenroom(tmp_path_factory.mktemp("cookies")).config(
        CONFIG.format(url=origin.url)
    )
    yield Target(running, origin)
    assert running.alive
    assert origin.garbage == []
    assert "Traceback" not in running.output
    assert running.metric("greenroom_gateway_errors_total") == 0
    running.kill()
    origin.close()


MALFORMED = [
    NAME, f"{NAME}=", f"{NAME}==", f"={NAME}", f"{NAME}=;", f"{NAME}= ", f"{NAME}=\t", f'{NAME}="x"', f"{NAME}=%00",
    f"{NAME}=\xff\xfe", f"{NAME}=a b", f"{NAME}=a,b",
    f"{NAME}=" + "A" * 108, f"{NAME}=" + "_" * 108, f"{NAME}=" + "=" * 108, f"{NAME}=" + "A" * 109, f"{NAME}=" + "A" * 107,
    f"{NAME}=" + "\xff" * 108, f"{NAME}=" + "A" * 8000,
    f"{NAME}[0]=x", f"{NAME}%3D=x", f"{NAME.upper()}=x", f"{NAME}_other=x", f"x{NAME}=y", f"x={NAME}=y", ";" * 1000, "=" * 1000,
    "," * 1000, "a" * 8000, ";=;=;", " ;" * 100,
    '"', f'"{NAME}=x"', f"$Version=1; {NAME}=x; $Path=/", f"{NAME}=../../etc/passwd", f"{NAME}=' OR 1=1--", f"{NAME}={{}}",
    f"{NAME}=eyJhbGciOiJub25lIn0.e30.",
]  # fmt: skip


@pytest.mark.parametrize("cookies", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_cookie_is_a_new_visitor(target: Target, cookies: str) -> None:
    assert target.ask(cookies).from_origin
    assert len(ticket_in(target.ask(cookies))) == 108
    assert not target.ask(cookies, host="full.example").from_origin
    assert target.waiting("full") == 0


def test_a_ticket_works_and_the_origin_never_sees_it(target: Target) -> None:
    mine = target.ticket()
    before = target.running.room("open")["active_users"]
    target.ask(f"a=1; {NAME}={mine};b=2")
    assert target.running.room("open")["active_users"] == before
    assert target.origin.seen[-1].header("cookie") == ["a=1;b=2"]


@pytest.mark.parametrize("at", [0, 5, 6, 17, 18, 50, 74, 98, 107])
def test_a_ticket_with_one_character_changed_is_a_new_visitor(target: Target, at: int) -> None:
    ticket = target.ticket()
    changed = ticket[:at] + ("A" if ticket[at] != "A" else "B") + ticket[at + 1 :]
    before = target.running.room("open")["active_users"]
    assert ticket_in(target.ask(f"{NAME}={changed}")) != changed
    assert target.running.room("open")["active_users"] == before + 1


@pytest.mark.parametrize("cut", [1, 4, 50, 107])
def test_a_truncated_or_extended_ticket_is_a_new_visitor(target: Target, cut: int) -> None:
    ticket = target.ticket()
    before = target.running.room("open")["active_users"]
    target.ask(f"{NAME}={ticket[:cut]}")
    target.ask(f"{NAME}={ticket}{ticket[:cut]}")
    assert target.running.room("open")["active_users"] == before + 2


def test_a_ticket_of_another_room_is_a_new_visitor(target: Target) -> None:
    accepted = target.ticket("other.example")
    assert not target.ask(f"{NAME}={accepted}", host="full.example").from_origin
    before = target.running.room("open")["active_users"]
    target.ask(f"{NAME}={accepted}")
    assert target.running.room("open")["active_users"] == before + 1


@pytest.mark.parametrize("place", ["first", "last", "middle", "separate lines"])
def test_any_valid_ticket_among_others_counts(target: Target, place: str) -> None:
    ticket = target.ticket()
    before = target.running.room("open")["active_users"]
    bad = f"{NAME}={'B' * 108}"
    good = f"{NAME}={ticket}"
    cookies = {"first": [good, bad, bad], "last": [bad, bad, good], "middle": [bad, good, bad]}.get(
        place
    )
    if cookies:
        target.ask("; ".join(cookies))
    else:
        target.ask(bad, lines=f"Cookie: {bad}\r\nCookie: {good}\r\n".encode())
    assert target.running.room("open")["active_users"] == before


def test_the_same_ticket_a_hundred_times_is_one_visitor(target: Target) -> None:
    ticket = target.ticket()
    before = target.running.room("open")["active_users"]
    assert target.ask("; ".join([f"{NAME}={ticket}"] * 100)).from_origin
    assert target.running.room("open")["active_users"] == before


def test_thousands_of_cookies_cost_nothing(target: Target) -> None:
    many = "; ".join(f"c{number}=x" for number in range(2500))
    assert target.ask(many).from_origin
    assert target.origin.seen[-1].header("cookie") == [many]
    assert target.ask("; ".join([f"{NAME}={'C' * 108}"] * 240)).from_origin
    assert target.origin.seen[-1].header("cookie") == []
    assert target.ask(NAME * 2000).from_origin
    assert target.ask(f"{NAME}=;" * 1800).from_origin


def test_a_cookie_larger_than_a_head_may_be_is_refused(target: Target) -> None:
    assert target.ask("a=" + "x" * 40_000).status == 431
    assert target.ask(b"", lines=b"Cookie: a=1\r\n" * 200).status == 431


@pytest.mark.parametrize("value", [b"a\x00b", b"a\r\n b", b"a\nb", b"a\x7fb", b"a\rb"])
def test_a_cookie_with_a_control_character_is_refused(target: Target, value: bytes) -> None:
    assert target.ask(b"x=" + value).status == 400


def test_one_stolen_waiting_ticket_is_one_place_however_many_use_it(target: Target) -> None:
    first = target.ask(host="full.example")
    ticket = ticket_in(first)
    refresh = re.search(r"\r\nRefresh: (\d+)", first.head)
    assert refresh
    time.sleep(int(refresh[1]))  # a place is real when its ticket comes back in time
    for _ in range(50):
        assert not target.ask(f"{NAME}={ticket}", host="full.example").from_origin
    assert target.waiting("full") == 1


@pytest.mark.parametrize(
    "beside",
    [
        b"",
        b"Connection: keep-alive\r\n",
        b"Connection: keep-alive\r\nX_Y: 1\r\n",
        b"X_Y: 1\r\nX_Z: 2\r\n",
    ],
)
def test_a_ticket_among_several_cookie_lines_lets_in_its_bearer_and_no_one_who_shares_a_line_with_him(
    target: Target, beside: bytes
) -> None:
    target.inside = ticket = target.inside or target.ticket("single.example")
    shared = b"lang=%d" % len(beside)
    for _ in range(2):
        both = b"Cookie: " + f"{NAME}={ticket}".encode() + b"\r\nCookie: " + shared + b"\r\n"
        assert target.ask(host="single.example", lines=beside + both).from_origin
        assert not target.ask(shared, host="single.example", lines=beside).from_origin
