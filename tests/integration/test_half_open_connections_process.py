"""Hundreds of connections without a request, in a process with few file descriptors: visitors are
served all the same.
"""

import socket
from contextlib import ExitStack
from threading import Thread

import pytest

HALF_OPEN = 300
LIMIT = 96


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_half_open_connections_keep_no_visitor_out_and_cut_no_request_off(
    greenroom, origin, loop
) -> None:
    if loop == "asyncio":
        (greenroom.folder / "uvloop.py").write_text("raise ImportError('not here')\n")
    options = (
        "--origin",
        origin.url,
        "--total-active-users",
        "1000",
        "--new-users-per-minute",
        "1000",
    )
    running = greenroom.run(
        "serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(greenroom.data), *options,
        env={"PYTHONPATH": str(greenroom.folder)}, within=("prlimit", f"--nofile={LIMIT}:{LIMIT}"),
    ).wait_until_ready()  # fmt: skip
    answers = []
    slow = Thread(target=lambda: answers.append(running.visitor().get("/slow?60").status))
    slow.start()
    greenroom.eventually(
        lambda: any("/slow" in request for request in origin.requests),
        "the slow request is under way",
    )
    with ExitStack() as ending:
        for number in range(HALF_OPEN):
            half = ending.enter_context(socket.create_connection(running.address))
            if number % 2:
                half.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
        assert [running.visitor().get("/").status for _ in range(5)] == [200] * 5
        assert running.metric("greenroom_gateway_connections_shed_total") >= HALF_OPEN - LIMIT
        origin.ends.set()
        slow.join()
        assert answers == [200], "what was under way has its whole answer"
    assert running.wait_until_printed("descriptors_short").output.count("descriptors_short") == 1
    assert "Too many open files" not in running.output
