"""`greenroom open-until`: lets a proxy fail open for some minutes."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from greenroom.cli.show import complain, say

MOST_MINUTES = 60
"""Without greenroom there is no limit on visitors, so an operator has to choose so again each hour.
"""


def _blocks(begin_s: int, end_s: int) -> list[str]:
    """The seconds from `begin_s` until `end_s`, tens at least, as beginnings of their numbers:
    179545 is 10,000 seconds.
    """
    found, at, end = [], begin_s // 10, end_s // 10
    while at < end:
        digits = 0
        while at % 10 ** (digits + 1) == 0 and at + 10 ** (digits + 1) <= end:
            digits += 1
        found.append(str(at // 10**digits))
        at += 10**digits
    return found


def _haproxy(_now_s: int, until_s: int) -> str:
    return f"until {until_s}"


def _caddy(_now_s: int, until_s: int) -> str:
    return f"{until_s}"


def _nginx(now_s: int, until_s: int) -> str:
    """nginx cannot compare numbers, so it is told with which digits each moment begins."""
    return "\n".join(
        ["# greenroom open-until", *(f"~^{block} @undecided;" for block in _blocks(now_s, until_s))]
    )


PROXIES: Mapping[str, Callable[[int, int], str]] = {
    "haproxy": _haproxy,
    "nginx": _nginx,
    "caddy": _caddy,
}
"""The file of each: now and until when, in seconds since 1970, for nginx in steps of ten."""


def open_until(
    minutes: Annotated[
        int, typer.Argument(min=0, max=MOST_MINUTES, help="Minutes from now on; 0 closes at once.")
    ],
    proxy: Annotated[
        str, typer.Argument(help=f"The proxy that reads the file: {', '.join(PROXIES)}.")
    ],
) -> None:
    """Print open-until.map, with which a proxy lets visitors go on for some minutes while greenroom
    is unreachable.

    The examples nginx, nginx-native-pass, haproxy-spoe and caddy read it; reload nginx and HAProxy
    afterwards. The proxy logs each request that goes on without a decision as an alert, and is
    closed again when the minutes are over.
    """
    if proxy not in PROXIES:
        raise typer.BadParameter(f"{proxy!r} is not one of {', '.join(PROXIES)}")
    now_s = int(time.time())
    until_s = now_s + 60 * minutes
    for line in PROXIES[proxy](now_s, until_s).splitlines():
        say(line)
    told = datetime.fromtimestamp(until_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    complain(
        "greenroom: while greenroom is unreachable, visitors"
        f" {f'go on without a decision until {told}' if minutes else 'do not go on'}"
    )
