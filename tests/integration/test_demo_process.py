"""`greenroom demo` without any argument: a shop, a room, a crowd that comes and goes when told to,
and nothing left behind.
"""

import json
import re
import signal
import socket
from pathlib import Path

import pytest


@pytest.fixture
def demo(greenroom):
    def start(*options: str):
        env = {"TMPDIR": str(greenroom.folder)}
        return (
            greenroom.run("demo", *options, env=env)
            .wait_until_ready()
            .wait_until_printed("Ctrl-C stops the demo.")
        )

    return start


@pytest.fixture
def until(greenroom):
    return greenroom.eventually


FREE = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")


def state(running) -> dict:
    return json.loads(running.ask("/demo/state").body)


def switch(running, form: str, origin: str | None = None) -> int:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        **({"Origin": origin} if origin else {}),
    }
    return running.control_visitor().get("/demo/crowd", "POST", headers, form.encode()).status


def test_it_says_what_to_open_and_the_shop_is_there(demo) -> None:
    running = demo(*FREE)
    shop, console = re.findall(r"Open  (http://\S+)", running.output)
    assert shop == f"http://127.0.0.1:{running.address[1]}/"
    assert console == f"http://127.0.0.1:{running.control[1]}/demo"
    visitor = running.visitor()
    assert "This shop serves <b>1</b> visitor right now." in visitor.get("/").text
    assert "Stoneware teapot" in visitor.get("/products/teapot").text
    assert "54" in visitor.get("/basket?add=teapot", "POST").text
    assert "Thank you!" in visitor.get("/checkout", "POST").text
    assert visitor.get("/nowhere").status == 404
    page = running.ask("/demo").text
    assert shop in page
    assert "Switch the crowd on" in page


def test_it_can_be_filled_by_hand_and_buying_makes_room(demo, until) -> None:
    running = demo(*FREE)
    visitors = [running.visitor() for _ in range(6)]
    assert "Opening day" in visitors[0].get("/").text
    for visitor in visitors[1:5]:
        until(lambda one=visitor: "Opening day" in one.get("/").text, "the ticket has come back")
    assert "Opening day" not in visitors[5].get("/").text
    visitors[0].get("/basket?add=kite", "POST")
    visitors[0].get("/checkout", "POST")
    assert state(running)["room"]["active_users"] == 4


def test_the_crowd_fills_the_shop_when_switched_on_and_goes_when_switched_off(demo, until) -> None:
    running = demo(*FREE)
    assert switch(running, "size=12&switch=on") == 303
    until(lambda: state(running)["room"]["active_users"] == 5, "a full shop")
    until(lambda: state(running)["room"]["waiting_users"] >= 5, "a line")
    assert state(running)["crowd"]["size"] == 12
    assert state(running)["crowd"]["failed"] == 0
    assert switch(running, "size=12&switch=off") == 303
    until(
        lambda: state(running)["crowd"]["waiting"] + state(running)["crowd"]["shopping"] == 0,
        "nobody of the crowd left",
    )


def test_the_crowd_may_be_there_from_the_start(demo, until) -> None:
    running = demo(*FREE, "--crowd", "7")
    doing = lambda: [state(running)["crowd"][what] for what in ("shopping", "waiting")]  # noqa: E731
    until(lambda: doing() == [5, 2], "five of the crowd inside and two waiting")


def test_strange_forms_and_pages_of_another_site_are_refused(demo) -> None:
    running = demo(*FREE)
    for size in ("x", "-1", "1" * 2000, "9999999999999"):
        assert switch(running, f"size={size}&switch=on") == 400
    assert state(running)["crowd"]["size"] == 0
    assert switch(running, "size=5&switch=on", "http://evil.example") == 403
    assert switch(running, "size=5&switch=on", f"http://127.0.0.1:{running.control[1]}") == 303


def test_ports_in_use_give_way_and_that_is_said(demo) -> None:
    """Takes the usual ports if no one has them, so that the demo has to find others in any case."""
    taken = []
    for port in (8080, 8081):
        try:
            taken.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            continue  # another one has it: as good
    try:
        running = demo()
        assert "127.0.0.1:8080 is in use; taking " in running.output
        assert running.visitor().get("/").status == 200
    finally:
        for listener in taken:
            listener.close()


def test_a_port_that_was_asked_for_and_is_in_use_is_an_error(greenroom) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        running = greenroom.run(
            "demo", "--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--control", "127.0.0.1:0"
        )
        assert running.end() == 2
    assert "another program is already listening there" in running.output
    assert "Traceback" not in running.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_with_a_crowd_inside(
    demo, greenroom, until, number: signal.Signals
) -> None:
    running = demo(*FREE, "--crowd", "9")
    until(lambda: state(running)["crowd"]["waiting"] > 0, "a line")
    running.send(number)
    assert running.end() == 0
    assert "Traceback" not in running.output
    assert [
        path for path in Path(greenroom.folder).iterdir() if path.name.startswith("greenroom-demo-")
    ] == []


def test_it_works_without_a_home_directory(greenroom) -> None:
    running = greenroom.run(
        "demo", *FREE, env={"HOME": "/nonexistent", "TMPDIR": str(greenroom.folder)}
    ).wait_until_ready()
    assert running.visitor().get("/").status == 200


def test_the_shop_alone_has_no_waiting_room(greenroom, free_port, visitor_class) -> None:
    port = free_port()
    running = greenroom.run(
        "demo", "--shop-only", "--listen", f"127.0.0.1:{port}"
    ).wait_until_printed("without a waiting room")
    visitors = [visitor_class(("127.0.0.1", port)) for _ in range(12)]
    assert ["Opening day" in visitor.get("/").text for visitor in visitors] == [True] * 12
    running.send(signal.SIGTERM)
    assert running.end() == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--crowd", "3"), "--shop-only: cannot be combined with --control, --crowd or --history"),
        (("--listen", "here"), "--listen: must be address:port"),
    ],
)
def test_the_shop_alone_takes_only_an_address(greenroom, options, reason: str) -> None:
    running = greenroom.run("demo", "--shop-only", *options)
    assert running.end() == 1
    assert reason in running.output
