"""`greenroom open-until`: what each proxy reads means the same moments, and no more than an hour."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from greenroom.cli.commands import app
from greenroom.cli.open_until import PROXIES


def printed(minutes: str, proxy: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["open-until", minutes, proxy])
    return result.exit_code, result.stdout


@given(now_s=st.integers(1_700_000_000, 2_000_000_000), left_s=st.integers(0, 3_600))
def test_nginx_is_open_from_now_until_then_to_ten_seconds_and_at_no_other_moment(
    now_s: int, left_s: int
) -> None:
    lines = PROXIES["nginx"](now_s, now_s + left_s).splitlines()[1:]
    named = [re.fullmatch(r"~(\^\d+) @undecided;", line) for line in lines]
    assert all(named)

    def opened(at_s: float) -> bool:
        return any(re.match(one[1], f"{at_s:.3f}") for one in named if one)

    until_s = (now_s + left_s) // 10 * 10
    for at_s in {now_s, now_s + left_s // 2, now_s + left_s // 3, until_s - 1}:
        assert opened(at_s) == (now_s // 10 * 10 <= at_s < until_s)
    assert not any(
        opened(at_s)
        for at_s in (until_s, now_s + left_s, now_s + 3_600, now_s + 100_000, now_s - 10)
    )


def test_haproxy_and_caddy_are_told_the_second() -> None:
    for proxy, pattern in (("haproxy", r"until (\d+)\n"), ("caddy", r"(\d+)\n")):
        code, text = printed("30", proxy)
        told = re.fullmatch(pattern, text)
        assert (code, bool(told)) == (0, True), text
        assert told is not None
        assert -60 <= int(told[1]) - time.time() - 1_800 <= 0


def test_nginx_closes_at_once() -> None:
    assert printed("0", "nginx") == (0, "# greenroom open-until\n")


@pytest.mark.parametrize(
    ("minutes", "proxy"), [("61", "nginx"), ("-1", "nginx"), ("30", "envoy"), ("x", "caddy")]
)
def test_more_than_an_hour_and_other_proxies_are_refused(minutes: str, proxy: str) -> None:
    assert printed(minutes, proxy) == (2, "")
