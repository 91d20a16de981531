"""The same requests through two front ends of the same decision service, one on sockets and one
without HTTP: the same answers.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from front_end_stories import NAME, STORIES, UPDATE, Step, check, origin, prepared, told
from plain_front_end import Given, Pairs, PlainFrontEnd
from visitors import Site

from greenroom.decision.observer import Decided


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_the_gateway_and_a_front_end_without_http_say_the_same(
    story: list[Step], tmp_path: Path, rig: Any, run: Any
) -> None:
    here, there = (
        Site(tmp_path / name, small_room(total_active_users=1)) for name in ("here", "there")
    )
    plain = PlainFrontEnd(here.decisions, origin)
    rig.decisions = there.decisions

    async def app(request: Any, writer: asyncio.StreamWriter) -> None:
        status, headers, body = origin(request.method, request.target.partition("?")[0])
        lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
        content = b"" if request.method == "HEAD" else body
        writer.write(
            b"HTTP/1.1 %d OK\r\n%bContent-Length: %d\r\n\r\n%b"
            % (status, lines, len(body), content)
        )

    async def over_sockets(step: Step, headers: Pairs) -> Given:
        lines = "".join(
            f"{name.decode()}: {value.decode()}\r\n" for name, value in headers if name != b"Host"
        )
        host = [value.decode() for name, value in headers if name == b"Host"]
        async with rig.visitor() as talk:
            hosts = "".join(f"Host: {one}\r\n" for one in host)
            talk.send(f"{step.method} {step.target} HTTP/1.1\r\n{hosts}{lines}\r\n".encode())
            got = await talk.response(step.method)
        pairs = tuple((name.encode(), value.encode()) for name, value in got.headers)
        cookie = next(
            (
                value
                for name, value in pairs
                if name.lower() == b"set-cookie" and value.startswith(NAME)
            ),
            b"",
        )
        return Given(got.status, pairs, got.body, cookie)

    async def play() -> None:
        rig.app = app
        jars: dict[int, dict[str, bytes]] = {0: {}, 1: {}}
        async with rig.running():
            for number, step in enumerate(story):
                given: list[Given] = []
                for index, site in enumerate((here, there)):
                    headers = prepared(step, site, jars[index])
                    given.append(
                        plain.request(step.method, step.target, headers)
                        if index == 0
                        else await over_sockets(step, headers)
                    )
                    where = (
                        f"step {number} at {'the plain front end' if index == 0 else 'the gateway'}"
                    )
                    check(step, site, jars[index], given[-1], where)
                if step.decided is Decided.ADMITTED and given[0].headers:
                    assert all(
                        b"x-origin" in {name.lower() for name, _ in one.headers}
                        or step.headers is UPDATE
                        for one in given
                    )
                assert told(here, given[0], step.decided) == told(there, given[1], step.decided), (
                    f"step {number}"
                )
        rig.errors.clear()

    run(play())
    told_elsewhere = {Decided.SEVERAL_ROOMS}  # needs settings: test_paths_of_applications_process
    assert {step.decided for story in STORIES.values() for step in story} == {
        *Decided,
        None,
    } - told_elsewhere, "every outcome is in a story"
