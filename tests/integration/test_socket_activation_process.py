"""Sockets that another process has opened: restarts and upgrades without a refused connection and
without a lost place.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from warm_start import WarmProcess

GREENROOM = Path(sys.executable).with_name("greenroom")
START_S = 60.0


COMMANDS = {
    "serve": ("serve",),
    "serve --workers": ("serve", "--workers", "2"),
    "decide": ("decide",),
}


class Processes:
    """greenroom processes on one socket, which outlives each of them."""

    def __init__(self, folder: Path, origin: str, eventually: Any, command: str) -> None:
        self.command = command
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(4_096)
        self.address = self.listener.getsockname()
        self.folder, self.eventually = folder, eventually
        self.running: list[WarmProcess] = []
        room = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 6\nnew_users_per_minute = 100\npace_admissions = false\nconfirm_newcomers = false\n'
        more = (
            'decide = "127.0.0.1:0"\ntrusted_proxies = ["127.0.0.1"]'
            if command == "decide"
            else f'origin = "{origin}"'
        )
        (folder / "greenroom.toml").write_text(
            f'{more}\ncontrol = "127.0.0.1:0"\ndata = "data"\ndrain_seconds = 5\n{room}'
        )

    def log(self, index: int) -> str:
        return (self.folder / f"log{index}").read_text()

    def start(self, names: str = "") -> int:
        """One more process; its number. It is not waited for."""
        names = names or ("decide" if self.command == "decide" else "visitors")
        command = [*COMMANDS[self.command], "--config", str(self.folder / "greenroom.toml")]
        env = {**os.environ, "LISTEN_FDS": "1", "LISTEN_FDNAMES": names, "PYTHONUNBUFFERED": "1"}
        with (self.folder / f"log{len(self.running)}").open("wb") as log:
            started = WarmProcess(command, env, log, third=self.listener.fileno())
        self.running.append(started)
        return len(self.running) - 1

    def ready(self, index: int) -> None:
        """Waits until this one serves."""

        def is_ready() -> bool:
            assert self.running[index].poll() is None, self.log(index)
            if self.command == "serve --workers":
                return self.log(index).count(": ready") == 2
            return "\nready" in self.log(index)

        self.eventually(is_ready, lambda: self.log(index), START_S)

    def end(self) -> None:
        for process in self.running:
            process.send_signal(
                signal.SIGTERM
            )  # killed, a process with workers would leave its Redis behind
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait(60)
        self.listener.close()


@pytest.fixture
def processes(request: Any, tmp_path: Path, origin: Any, greenroom: Any) -> Iterator[Processes]:
    made = Processes(tmp_path, origin.url, greenroom.eventually, getattr(request, "param", "serve"))
    yield made
    made.end()


def asked(
    visitor: Any, path: str, as_proxy: bool, headers: dict[str, str] | None = None
) -> tuple[str, Any]:
    """What is wrong with the answer for a visitor who is inside, and the answer; `as_proxy`: a
    proxy asks about the visitor (forward-auth).
    """
    said = {
        "X-Forwarded-Method": "POST",
        "X-Forwarded-Uri": path,
        "X-Forwarded-Host": "shop.example",
        "X-Forwarded-For": "192.0.2.7",
    }
    if as_proxy:
        answer = visitor.get("/forward-auth", headers={**said, **(headers or {})})
        inside = answer.status == 200 and answer.headers.get("Greenroom-Verdict") == "forward"
    else:
        answer = visitor.get(path, "POST", headers, b"x" * 1_000)
        inside = answer.status == 200 and not answer.waiting
    return "" if inside else f"{answer.status} {answer.text[:200]}", answer


@pytest.mark.parametrize("processes", COMMANDS, indirect=True)
def test_restart_and_upgrade_under_load_refuse_no_connection_and_lose_no_place(
    processes: Processes, visitor_class: Any
) -> None:
    processes.ready(processes.start())
    decides = processes.command == "decide"
    inside = [visitor_class(processes.address) for _ in range(6)]
    for visitor in inside:  # a worker may have to fetch its permits first
        processes.eventually(
            lambda visitor=visitor: not asked(visitor, "/", decides)[0],
            "everybody who fits is let in",
        )
    waiting = visitor_class(processes.address)
    problem, place = asked(waiting, "/", decides)
    assert problem, "it is full"
    time.sleep(place.refresh_s)  # as the page says; then the place is real
    assert asked(waiting, "/", decides)[0]
    failures: list[str] = []
    served = [0] * len(inside)
    over = threading.Event()

    def visit(index: int) -> None:
        while not over.wait(0.01):  # so that the processors are free for processes that start
            try:
                problem, _ = asked(inside[index], f"/{index}", decides)
            except OSError as error:
                problem = repr(error)
            served[index] += not problem
            failures.extend([problem] if problem else [])

    threads = [threading.Thread(target=visit, args=(index,)) for index in range(len(inside))]
    for thread in threads:
        thread.start()
    try:
        old, new = (
            0,
            processes.start(),
        )  # an upgrade: the new process is there before the old one is told to end
        time.sleep(1.5)  # it gets as far as it can: the data directory is in use
        assert "ready" not in processes.log(new)
        processes.running[old].send_signal(signal.SIGTERM)
        assert processes.running[old].wait(60) == 0
        assert "cut off" not in processes.log(old)
        processes.ready(new)
        before = sum(served)
        if (
            processes.command != "serve --workers"
        ):  # a restart: the old process has ended before the new one begins
            processes.running[new].send_signal(signal.SIGTERM)
            assert processes.running[new].wait(60) == 0
            processes.ready(processes.start())
        processes.eventually(lambda: sum(served) > before + 20, "visitors are served again")
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert failures == [], f"of {sum(served)} requests"
    assert min(served) > 0
    assert asked(visitor_class(processes.address), "/", decides)[0], (
        "the six inside are still counted"
    )
    kept = asked(waiting, "/", decides, {"Greenroom-Update": "1"})[1].told
    assert (kept["inWaitingRoom"], kept.get("queuePosition", 1)) == (True, 1), (
        "the place outlives the processes"
    )


def test_what_cannot_be_used_is_said(processes: Processes) -> None:
    for names, said in (("visitors:decide", "LISTEN_FDS"),):
        number = processes.start(names)
        assert processes.running[number].wait(60) == 2
        assert said in processes.log(number)
    unnamed = processes.start("greenroom.socket")
    processes.ready(unnamed)
    assert f"visitors   http://127.0.0.1:{processes.address[1]}" in processes.log(unnamed)


def test_the_real_socket_activation_of_systemd(
    tmp_path: Path, origin: Any, free_port: Callable[[], int], visitor_class: Any
) -> None:
    port = free_port()
    room = ("--origin", origin.url, "--total-active-users", "1", "--new-users-per-minute", "1")
    serve = [GREENROOM, "serve", *room, "--control", "127.0.0.1:0", "--data", tmp_path / "data"]
    activate = ["systemd-socket-activate", "-l", f"127.0.0.1:{port}", "--fdname=visitors"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*activate, *serve], stdout=log, stderr=log)
    try:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionRefusedError):
                assert visitor_class(("127.0.0.1", port)).get("/").headers["X-Origin"] == "yes", (
                    "the very first visitor starts greenroom"
                )
                break
            time.sleep(0.05)  # until systemd's tool listens
        while (
            not (told := f"http://127.0.0.1:{port}" in (tmp_path / "log").read_text())
            and time.monotonic() < end
        ):
            time.sleep(
                0.05
            )  # the first visitor may be answered before greenroom has printed its address
        assert told
    finally:
        process.terminate()
        process.wait(60)
