"""Many requests over one connection to the real nginx and HAProxy: a pass lets by its own request
and no other.

HAProxy remembers of a connection which cookies it has seen for which host. Browsers send one
visitor's requests over a connection; a proxy in front sends those of many visitors over one, and
HTTP/2 those of several hosts too.
"""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from http2_wire import Http2, Question
from pass_forgery import FORGED, GENUINE, until
from proxy_chain import Chain
from real_proxies import FILES

HOST, OTHER_HOST = "shop.example.com", "other.example.com"
LONG_S = 300
"""Left of a pass in a test that is not about its end."""


def cookies_seen(body: bytes) -> str | None:
    """The Cookie header that the application was sent, empty when it had none; None when it was not
    asked.
    """
    if not body.startswith(b"{"):
        return None
    return {name.lower(): value for name, value in json.loads(body)["headers"]}.get("cookie", "")


class OneConnection:
    """HTTP/1.1 over one connection that is never replaced."""

    def __init__(self, chain: Chain) -> None:
        self.connection = http.client.HTTPConnection(*chain.address, timeout=30)
        self.connection.connect()
        self.sock = self.connection.sock

    def ask(self, cookies: str = "", host: str = HOST, path: str = "/shop") -> str | None:
        """What the application saw of these cookies; None when it was not asked."""
        headers = {"Host": host, "Accept": "text/html", **({"Cookie": cookies} if cookies else {})}
        assert self.connection.sock is self.sock, "still the same connection"
        self.connection.request("GET", path, headers=headers)
        return cookies_seen(self.connection.getresponse().read())


def with_pass(value: str, own: str = "own=1") -> str:
    return f"{own}; __cfwaitingroom=x; __greenroom_pass={value}"


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_what_a_connection_has_shown_is_worth_nothing_for_other_cookies_hosts_and_paths(
    chain: Chain,
) -> None:
    assert not chain.visitor().get("/shop").waiting
    one, genuine = OneConnection(chain), until(chain.name, LONG_S)
    shown = with_pass(genuine)

    def still_known() -> bool:
        return one.ask(shown) == "own=1"

    assert [still_known(), still_known()] == [True, True]
    changed = genuine[:-9] + ("A" if genuine[-9] != "A" else "B") + genuine[-8:]
    for cookies in (
        "",
        "own=1",
        "own=1; __cfwaitingroom=x",
        with_pass(changed),
        with_pass(genuine[:-1]),
        with_pass(genuine + "A"),
    ):
        assert (one.ask(cookies), still_known()) == (None, True), cookies
    for name, forged in FORGED[chain.name].items():
        assert (one.ask(with_pass(forged())), still_known()) == (None, True), name
    for host in (OTHER_HOST, HOST + ".evil.example", ""):
        assert (one.ask(shown, host or "x"), still_known()) == (None, True), host
    for path in ("/shop?greenroom=leave", "/a;b", "/a/../b", "//shop", "/a%2fb"):
        assert (one.ask(shown, path=path), still_known()) == (None, True), path
    assert one.ask(with_pass(genuine, "own=2")) == "own=2", "the same pass beside other cookies"
    assert still_known()


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_visitors_who_share_a_connection_have_their_own_cookies_and_passes(chain: Chain) -> None:
    """As behind a proxy that sends all of them over one connection."""
    assert not chain.visitor().get("/shop").waiting
    one = OneConnection(chain)
    visitors = {f"own={number}": until(chain.name, LONG_S + number % 3) for number in range(6)}
    for _ in range(3):
        for own, value in visitors.items():
            assert one.ask(with_pass(value, own)) == own
            assert one.ask(with_pass(FORGED[chain.name]["another secret"](), own)) is None
            assert one.ask(own) is None, "the next visitor has no pass"
    assert one.ask("__greenroom_pass=" + until(chain.name, LONG_S)) == "", (
        "and one without other cookies gets none from the last"
    )


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_a_pass_ends_on_a_connection_that_stays_open(chain: Chain) -> None:
    assert not chain.visitor().get("/shop").waiting
    one, short, long = OneConnection(chain), until(chain.name, 6), until(chain.name, LONG_S)
    assert one.ask(with_pass(short, "own=short")) == "own=short"
    assert one.ask(with_pass(long, "own=long")) == "own=long"
    chain.eventually(
        lambda: one.ask(with_pass(short, "own=short")) is None, "it is over after six seconds"
    )
    assert [one.ask(with_pass(long, "own=long")) for _ in range(2)] == ["own=long"] * 2
    assert one.ask(with_pass(short, "own=short")) is None


SPEAKING_HTTP2 = {
    "nginx-native-pass": ("listen {}", "listen {} http2"),
    "haproxy-native-pass": ("bind {}", "bind {} proto h2"),
}


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_http2_streams_of_several_visitors_and_hosts_do_not_help_each_other(
    chain: Chain, tmp_path: Path
) -> None:
    assert not chain.visitor().get("/shop").waiting
    config, at = tmp_path / FILES[chain.name], "{}:{}".format(*chain.address)
    before, after = (text.format(at) for text in SPEAKING_HTTP2[chain.name])
    assert before in config.read_text()
    config.write_text(config.read_text().replace(before, after))
    chain.restart()
    value, other = until(chain.name, LONG_S), until(chain.name, LONG_S, OTHER_HOST)
    asked: list[tuple[Question, Any]] = [
        (Question(HOST, with_pass(value)), "own=1"),
        (Question(OTHER_HOST, with_pass(value)), None),
        (Question(OTHER_HOST, with_pass(other)), "own=1"),
        (Question(HOST, with_pass(other)), None),
        (Question(HOST, with_pass(value, "own=2")), "own=2"),
        (Question(HOST, "own=1"), None),
        (Question(HOST, "__greenroom_pass=" + value), ""),
        (Question(HOST, with_pass(FORGED[chain.name]["another room"]())), None),
        (Question(HOST, with_pass(value), "/a/../b"), None),
    ]
    with Http2(chain.address) as connection:
        for turn in range(4):
            turned = asked[turn * 2 :] + asked[: turn * 2]
            for question, expected in turned:
                assert cookies_seen(connection.ask(question)[0]) == expected, question
            at_once = connection.ask(*(question for question, _ in turned))
            assert [cookies_seen(body) for body in at_once] == [expected for _, expected in turned]
