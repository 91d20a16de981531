"""A running installation upgrades in place: what greenroom of commit df46b85 wrote (one process with
its data directory; an edge with Redis and PostgreSQL) is opened with every place, session, key,
account, audit entry and minute of analytics.

The processes live at the moment when the installation was left (libfaketime), with the wall clock
moved and the others as they are.
"""

import base64
import json
import lzma
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from api_rig import Api
from installation import (
    CONFIG,
    FIXTURES,
    IN_FILE,
    IN_STORE,
    INSIDE,
    PASSWORD,
    WAITING,
    Memory,
    minutes,
    said,
    sign_in,
)
from postgres import Postgres, tool
from redis_world import RedisServer
from tests.conftest import Origin, Running, StartGreenroom, Visitor, application, eventually

VERSION = "df46b85"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
MALLOC = "libtcmalloc_minimal.so.4"
"""Redis's own, jemalloc, asks for the time before libfaketime can tell it."""
MOVING = {
    "created_on",
    "modified_on",
    "total_visitors",
    "status",
    "failure_reason",
    "regions",
    "last_used_on",
    "origin",
}
"""Fields that change while nobody changes anything: an entry of the file is as old as its process,
and the application has another port.
"""


@dataclass
class Opened:
    """The installation under today's greenroom."""

    running: Running
    memory: Memory
    store: list[str]

    @property
    def api(self) -> Api:
        return Api(self.running.control, self.memory.token)

    def visitor(self, host: str, cookies: dict[str, str]) -> Visitor:
        return Visitor(self.running.address, host, dict(cookies))


def then(at_s: float) -> dict[str, str]:
    """The environment of processes that live at this moment."""
    assert FAKETIME, "libfaketime is not installed; ./test installs it"
    return {
        **os.environ,
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": f"{at_s - time.time():+.3f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def sweep() -> None:
    """Takes away what libfaketime left of killed processes: one that gets such a number would not
    start.
    """
    for file in Path("/dev/shm").glob("*faketime_s*"):
        if not Path("/proc", file.name.rpartition("_")[2]).exists():
            file.unlink(missing_ok=True)


def unpack(shape: str, folder: Path) -> Memory:
    name = FIXTURES / f"installation_{VERSION}_{shape}"
    packed = lzma.decompress(base64.b64decode(name.with_suffix(".tar.xz.b64").read_text()))
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder)
    return Memory(**json.loads(name.with_suffix(".json").read_text()))


@pytest.fixture(scope="module")
def site() -> Iterator[Origin]:
    with application() as made:
        yield made


@pytest.fixture(params=["serve", "edge"], scope="module")
def opened(request, tmp_path_factory, site) -> Iterator[Opened]:
    sweep()
    folder = tmp_path_factory.mktemp("upgrade")
    start = StartGreenroom(folder)
    memory = unpack(request.param, folder)
    options, store, ends = ["serve"], ["--data", str(start.data)], []
    if request.param == "edge":
        postgres = Postgres()
        ends = [postgres.close]
        url = postgres.new_database()
        load = [tool("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", start.data / "store.sql", url]
        subprocess.run(load, check=True)
        options, store = ["edge", "--store", url], [*store, "--store", url]
    env = then(memory.at_s)  # as late as can be: who stays away for a minute loses the place
    if request.param == "edge":
        faked = {**env, "LD_PRELOAD": f"{MALLOC} {FAKETIME}"}
        told = [f"{name}={faked[name]}" for name in faked if name not in os.environ]
        server = RedisServer(start.data, program=("env", *told, "redis-server"))
        ends.append(server.kill)
        options += ["--redis", server.url]
    (folder / "greenroom.toml").write_text(CONFIG.format(origin=site.url))
    places = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(start.data)]
    file = ["--config", str(folder / "greenroom.toml")]
    try:
        running = start.run(*options, *file, *places, env=env).wait_until_ready()
        yield Opened(running, memory, store)
    finally:
        for process in start.processes:
            if process.alive:
                process.kill()
        for end in ends:
            end()
        sweep()


def lasting(value: Any) -> Any:
    """Without the fields that move."""
    if isinstance(value, dict):
        return {name: lasting(inner) for name, inner in value.items() if name not in MOVING}
    return [lasting(inner) for inner in value] if isinstance(value, list) else value


def missing(was: Any, now: Any, at: str = "") -> list[str]:
    """What was said and is not said now; new fields are no loss."""
    if isinstance(was, dict) and isinstance(now, dict):
        return [
            lost
            for name, inner in was.items()
            for lost in (
                missing(inner, now[name], f"{at}/{name}")
                if name in now
                else [f"{at}/{name} is gone"]
            )
        ]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [lost for i, inner in enumerate(was) for lost in missing(inner, now[i], f"{at}/{i}")]
    # what nobody set is null since 1.0, where it was empty
    same = was == now or (now is None and was in ("", [], {}))
    return [] if same else [f"{at}: {was!r} was, {now!r} is"]


# First: who does not come for a minute loses the place.
@pytest.mark.parametrize("host", [IN_FILE, IN_STORE])
def test_everybody_keeps_session_and_place(opened: Opened, site, host: str) -> None:
    zone = opened.memory.answers["zones"][0]["id"]
    told = opened.api.ask("PATCH", f"/zones/{zone}", {"greenroom": {"origin": site.url}})
    assert told.result
    first, *_ = opened.memory.inside[host]
    eventually(
        lambda: not opened.visitor(host, first).get().waiting, "the process has read its store"
    )
    for cookies in opened.memory.inside[host]:
        assert not opened.visitor(host, cookies).get().waiting
    assert opened.visitor(host, {}).get().waiting, "the room is as full as it was"
    json_told = {"Accept": "application/json"}
    places = []
    for cookies in opened.memory.waiting[host]:
        answer = opened.visitor(host, cookies).get(headers=json_told)
        assert answer.waiting
        places.append(answer.told)
    assert [told["inWaitingRoom"] for told in places] == [True] * len(places)
    # who had no place would be counted when the ticket comes back
    name = {IN_FILE: "from-the-file", IN_STORE: "stored"}[host]
    eventually(lambda: opened.running.room(name)["waiting_users"] == WAITING, "all are in line")
    assert opened.running.room(name)["active_users"] == INSIDE


def test_the_api_says_of_every_entry_what_it_said(opened: Opened) -> None:
    for what, path in opened.memory.paths.items():
        answer = opened.api.ask("GET", path).result
        assert not missing(lasting(opened.memory.answers[what]), lasting(answer)), what


AUDITED = ("account ada", "list office", "203.0.113.0/24", "zone example.com", "room stored",
           "event spring", "health check origin", "on call", "status page Shop status")  # fmt: skip


def test_accounts_tokens_and_the_audit_log_are_there(opened: Opened) -> None:
    for command, lines in opened.memory.commands.items():
        found = said(command, *opened.store)
        if command.startswith("audit"):  # worded anew since
            assert [name for name in AUDITED if name not in "\n".join(found)] == []
            lines, found = ([one.rpartition("): ")[0] for one in told] for told in (lines, found))
            assert found[-len(lines) :] == lines, "when, and by whom; the newest come first"
        # what is empty is left out since 1.0
        lost = [line for line in lines if line not in found and not line.endswith(' = ""')]
        assert [line for line in lost if "origin = " not in line] == [], command


def test_an_operator_stays_signed_in_and_the_password_opens(opened: Opened) -> None:
    operator = opened.running.control_visitor()
    operator.cookies = dict(opened.memory.dashboard)
    assert "from-the-file" in operator.get("/rooms").text
    fresh = opened.running.control_visitor()
    fresh.cookies = sign_in(opened.running, name="ada", password=PASSWORD.replace(" ", "+"))
    assert "from-the-file" in fresh.get("/rooms").text


@pytest.mark.parametrize("shape", ["serve", "edge"])
def test_the_minutes_of_analytics_are_there(tmp_path: Path, shape: str) -> None:
    memory = unpack(shape, tmp_path)
    assert len(memory.minutes) >= 2
    assert not missing(memory.minutes, minutes(memory, tmp_path / "data"))
