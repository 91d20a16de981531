"""HEAD of a page that is held, without a ticket: every front end answers as it answers GET, with
that length and without the body.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from front_end_stories import IMAGE, JSON, PAGE, origin
from middleware_fronts import AsgiFront, WsgiFront
from plain_front_end import Given, Pairs, PlainFrontEnd
from proxy_questions import SPEAKING, Asking, AskingProxy
from visitors import Site

HOST = (b"Host", b"shop.example")
DRAWN = {b"refresh", b"retry-after", b"set-cookie", b"date"}
FRONTS: dict[str, Callable[[Site], Any]] = {
    "plain": lambda site: PlainFrontEnd(site.decisions, origin),
    "asgi": lambda site: AsgiFront(site.decisions, origin),
    "wsgi": lambda site: WsgiFront(site.decisions, origin),
    **{
        name: lambda site, speak=speak: AskingProxy(Asking(site.decisions), speak, origin)
        for name, speak in SPEAKING.items()
    },  # type: ignore[misc]
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Full, and answering JSON."""
    return Site(
        tmp_path,
        small_room(total_active_users=1, new_users_per_minute=1, json_response_enabled=True),
    )


def same(head: Given, got: Given) -> None:
    assert (head.status, named(head)) == (got.status, named(got))
    assert (head.body, head.cookie) == (b"", b"")
    lengths = [value for name, value in head.headers if name.lower() == b"content-length"]
    assert lengths in ([], [b"%d" % len(got.body)])


def named(given: Given) -> set[tuple[bytes, bytes]]:
    return {(name.lower(), value) for name, value in given.headers if name.lower() not in DRAWN}


@pytest.mark.parametrize("headers", [PAGE, JSON, IMAGE])
@pytest.mark.parametrize("name", FRONTS)
def test_head_is_like_get(name: str, headers: Pairs, site: Site) -> None:
    front = FRONTS[name](site)
    front.request("GET", "/", (HOST, *PAGE))
    same(front.request("HEAD", "/", (HOST, *headers)), front.request("GET", "/", (HOST, *headers)))
    assert site.errors == []


@pytest.mark.parametrize("headers", [PAGE, JSON, IMAGE])
def test_head_is_like_get_at_the_gateway(headers: Pairs, site: Site, rig: Any, run: Any) -> None:
    rig.decisions = site.decisions

    async def ask(method: str, headers: Pairs) -> Given:
        lines = "".join(
            f"{name.decode()}: {value.decode()}\r\n" for name, value in (HOST, *headers)
        )
        async with rig.visitor() as talk:
            talk.send(f"{method} / HTTP/1.1\r\n{lines}\r\n".encode())
            got = await talk.response(method)
            if method == "HEAD":
                talk.send(b"GET /again HTTP/1.1\r\nHost: shop.example\r\nAccept: text/html\r\n\r\n")
                again = await talk.response("GET")
                assert b"<html" in again.body, "the next answer begins where the head ends"
        pairs = tuple((name.encode(), value.encode()) for name, value in got.headers)
        cookie = next((value for name, value in pairs if name.lower() == b"set-cookie"), b"")
        return Given(got.status, pairs, got.body, cookie)

    async def play() -> None:
        async with rig.running():
            await ask("GET", PAGE)
            head, got = await ask("HEAD", headers), await ask("GET", headers)
            assert any(name.lower() == b"content-length" for name, _ in head.headers)
            same(head, got)

    run(play())
