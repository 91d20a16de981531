"""Sockets that another process has opened: restarts and upgrades without a refused connection and without a lost place."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GREENROOM = Path(sys.executable).with_name("greenroom")
PASS_ON = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1', "
    "LISTEN_FDNAMES=os.environ['NAMES']); os.execv(sys.argv[2], sys.argv[2:])"
)
"""The part of systemd: the socket becomes descriptor 3, and the variables say whose it is."""
START_S = 60.0


class Processes:
    """greenroom processes on one socket, which outlives each of them."""

    def __init__(self, folder: Path, origin: str, eventually: Any) -> None:
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(4_096)
        self.address = self.listener.getsockname()
        self.folder, self.eventually = folder, eventually
        self.running: list[subprocess.Popen[str]] = []
        room = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 6\nnew_users_per_minute = 100\npace_admissions = false\n'
        (folder / "greenroom.toml").write_text(f'origin = "{origin}"\ncontrol = "127.0.0.1:0"\ndata = "data"\ndrain_seconds = 5\n{room}')

    def log(self, index: int) -> str:
        return (self.folder / f"log{index}").read_text()

    def start(self, names: str = "visitors") -> int:
        """One more process; its number. It is not waited for."""
        command = [
            sys.executable,
            "-c",
            PASS_ON,
            str(self.listener.fileno()),
            GREENROOM,
            "serve",
            "--config",
            self.folder / "greenroom.toml",
        ]
        env = {**os.environ, "NAMES": names, "PYTHONUNBUFFERED": "1"}
        with (self.folder / f"log{len(self.running)}").open("w") as log:
            started = subprocess.Popen(command, stdout=log, stderr=log, pass_fds=(self.listener.fileno(),), env=env, text=True)
        self.running.append(started)
        return len(self.running) - 1

    def ready(self, index: int) -> None:
        """Waits until this one serves."""

        def is_ready() -> bool:
            assert self.running[index].poll() is None, self.log(index)
            return "\nready" in self.log(index)

        self.eventually(is_ready, lambda: self.log(index), START_S)

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait(20)
        self.listener.close()


@pytest.fixture
def processes(tmp_path: Path, origin: Any, greenroom: Any) -> Iterator[Processes]:
    made = Processes(tmp_path, origin.url, greenroom.eventually)
    yield made
    made.end()


def test_restart_and_upgrade_under_load_refuse_no_connection_and_lose_no_place(processes: Processes, visitor_class: Any) -> None:
    processes.ready(processes.start())
    inside = [visitor_class(processes.address) for _ in range(6)]
    assert not any(visitor.get("/").waiting for visitor in inside)
    waiting = visitor_class(processes.address)
    place = waiting.take_place()
    assert place.waiting
    failures: list[str] = []
    served = [0] * len(inside)
    over = threading.Event()

    def visit(index: int) -> None:
        while not over.is_set():
            try:
                answer = inside[index].get(f"/{index}", "POST", body=b"x" * 1_000)
            except OSError as error:
                failures.append(repr(error))
            else:
                served[index] += 1
                if answer.waiting or answer.status != 200:
                    failures.append(f"{answer.status} {answer.text[:200]}")

    threads = [threading.Thread(target=visit, args=(index,)) for index in range(len(inside))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):  # an upgrade: the new process is there before the old one is told to end
            old = len(processes.running) - 1
            new = processes.start()
            time.sleep(1.5)  # it gets as far as it can: the data directory is in use
            assert "ready" not in processes.log(new)
            processes.running[old].terminate()
            assert processes.running[old].wait(30) == 0
            assert "cut off" not in processes.log(old)
            processes.ready(new)
        before = sum(served)
        last = len(processes.running) - 1  # a restart: the old process has ended before the new one begins
        processes.running[last].terminate()
        assert processes.running[last].wait(30) == 0
        processes.ready(processes.start())
        processes.eventually(lambda: sum(served) > before + 20, "visitors are served again")
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert failures == [], f"of {sum(served)} requests"
    assert min(served) > 0
    assert visitor_class(processes.address).get("/").waiting, "the six inside are still counted"
    kept = waiting.get("/", headers={"Greenroom-Update": "1"}).told
    assert (kept["inWaitingRoom"], kept.get("queuePosition", 1)) == (True, 1), "the place outlives three processes"


def test_what_cannot_be_used_is_said(processes: Processes) -> None:
    for names, said in (("visitors:decide", "LISTEN_FDS"),):
        number = processes.start(names)
        assert processes.running[number].wait(60) == 2
        assert said in processes.log(number)
    unnamed = processes.start("greenroom.socket")
    processes.ready(unnamed)
    assert f"visitors   http://127.0.0.1:{processes.address[1]}" in processes.log(unnamed)


def test_the_real_socket_activation_of_systemd(tmp_path: Path, origin: Any, free_port: Callable[[], int], visitor_class: Any) -> None:
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
                assert visitor_class(("127.0.0.1", port)).get("/").headers["X-Origin"] == "yes", "the very first visitor starts greenroom"
                break
            time.sleep(0.05)  # until systemd's tool listens
        while not (told := f"http://127.0.0.1:{port}" in (tmp_path / "log").read_text()) and time.monotonic() < end:
            time.sleep(0.05)  # the first visitor may be answered before greenroom has printed its address
        assert told
    finally:
        process.terminate()
        process.wait(20)
