"""A running installation as an operator has it after some months: one of everything in the
configuration, visitors inside and in line, and what the API and the commands said of it.

`tests/integration/test_upgrade.py` opens what an older greenroom wrote. To write the fixture of a
version, run this file with the `greenroom` command of that version:

    .venv/bin/python tests/support/installation.py OLDER/.venv/bin/greenroom VERSION
"""

import base64
import csv
import io
import json
import lzma
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
sys.path[:0] = [str(Path(__file__).resolve().parent), str(FIXTURES.parents[1])]

import warm_start  # noqa: E402
from api_rig import ACCOUNT, Api  # noqa: E402
from postgres import Postgres, tool  # noqa: E402
from redis_world import RedisServer  # noqa: E402
from tests import conftest  # noqa: E402
from tests.conftest import Running, StartGreenroom, Visitor  # noqa: E402

PASSWORD = "correct horse battery staple"
IN_FILE, IN_STORE = "file.example.com", "stored.example.com"
INSIDE, WAITING = 2, 3

CONFIG = """
origin = "{origin}"
[[rooms]]
name = "from-the-file"
host = "file.example.com"
total_active_users = 2
new_users_per_minute = 100
confirm_newcomers = false
session_duration = 30
json_response_enabled = true
"""

MONTHS = {
    "prequeue_start_time": "2090-04-01T09:00:00Z",
    "event_start_time": "2090-04-01T10:00:00Z",
    "event_end_time": "2090-04-02T10:00:00Z",
}
ALERTING = f"/accounts/{ACCOUNT}/alerting/v3"


def configure(api: Api, origin: str) -> dict[str, str]:
    """Makes one of everything; gives the paths at which it is listed."""

    def make(path: str, document: Any) -> Any:
        return api.ask("POST", path, document).result

    listed = make(f"/accounts/{ACCOUNT}/rules/lists", {"name": "office", "kind": "ip"})["id"]
    make(f"/accounts/{ACCOUNT}/rules/lists/{listed}/items", [{"ip": "203.0.113.0/24"}])
    zone = make("/zones", {"name": "example.com", "greenroom": {"origin": origin}})["id"]
    rooms = f"/zones/{zone}/waiting_rooms"
    room = make(
        rooms,
        {
            "name": "stored",
            "host": IN_STORE,
            "total_active_users": 200,
            "new_users_per_minute": 200,
            "session_duration": 30,
            "json_response_enabled": True,
            "cookie_attributes": {"samesite": "lax", "secure": "never"},
            "custom_page_html": "<p>{{waitTimeKnown}}</p>",
            "default_template_language": "de-DE",
            "enabled_origin_commands": ["revoke"],
            "additional_routes": [{"host": "also.example.com", "path": "/buy"}],
            "cookie_suffix": "s",
            "greenroom": {"confirm_newcomers": False},
        },
    )["id"]
    make(f"{rooms}/{room}/events", {"name": "spring", "shuffle_at_event_start": True, **MONTHS})
    make(
        f"{rooms}/{room}/rules",
        {"action": "bypass_waiting_room", "expression": "ip.src in $office", "description": "us"},
    )
    check = {"name": "origin", "address": "192.0.2.1", "suspended": True, "interval": 60}
    make(f"/zones/{zone}/healthchecks", check)
    service = {"name": "on call", "routing_key": "R0"}
    called = make(f"{ALERTING}/destinations/pagerduty", service)["id"]
    mechanisms = {"email": [{"id": "ops@example.com"}], "pagerduty": [{"id": called}]}
    make(
        f"{ALERTING}/policies",
        {"name": "events", "alert_type": "greenroom_event", "mechanisms": mechanisms},
    )
    make(f"/accounts/{ACCOUNT}/status_pages", {"path": "/shop", "title": "Shop status"})
    make(f"/accounts/{ACCOUNT}/incident_notes", {"text": "All is well."})
    return {
        "zones": "/zones",
        "rooms": rooms,
        "events": f"{rooms}/{room}/events",
        "rules": f"{rooms}/{room}/rules",
        "lists": f"/accounts/{ACCOUNT}/rules/lists",
        "items": f"/accounts/{ACCOUNT}/rules/lists/{listed}/items",
        "health checks": f"/zones/{zone}/healthchecks",
        "policies": f"{ALERTING}/policies",
        "services": f"{ALERTING}/destinations/pagerduty",
        "status pages": f"/accounts/{ACCOUNT}/status_pages",
        "notes": f"/accounts/{ACCOUNT}/incident_notes",
        "settings": f"/zones/{zone}/waiting_rooms/settings",
    }


@dataclass
class Memory:
    """What somebody who was there remembers; written as JSON beside the data."""

    at_s: float = 0.0
    token: str = ""
    paths: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    minutes: list[dict[str, str]] = field(default_factory=list)
    inside: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    waiting: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    dashboard: dict[str, str] = field(default_factory=dict)


COMMANDS = ("export", "account list", "token list", "audit --limit 100")
MINUTES = "analytics export --from 2026-01-01T00:00:00Z --to 2027-06-01T00:00:00Z --room"


def said(command: str, *options: str) -> list[str]:
    """The lines that a command prints."""
    arguments = [*command.split(), *options]
    if conftest.GREENROOM == warm_start.GREENROOM:
        return warm_start.output_of(*arguments).splitlines()
    older = subprocess.run(
        [conftest.GREENROOM, *arguments], capture_output=True, text=True, check=True
    )
    return older.stdout.splitlines()


def minutes(memory: Memory, data: Path) -> list[dict[str, str]]:
    """What analytics have of each room that had visitors, by the names of the columns."""
    rooms = [room["id"] for room in memory.answers["rooms"]]
    found = (csv.DictReader(said(MINUTES, room, "--data", str(data))) for room in rooms)
    return [row for rows in found for row in rows]


def sign_in(running: Running, **form: str) -> dict[str, str]:
    """The cookies of somebody who signed in with the password."""
    operator = running.control_visitor()
    home = f"http://{operator.host}"
    body = "&".join(f"{name}={value}" for name, value in form.items()).encode()
    kind = "application/x-www-form-urlencoded"
    operator.get("/sign-in", "POST", {"Content-Type": kind, "Origin": home}, body)
    return operator.cookies


def live(running: Running, memory: Memory, store: list[str]) -> None:
    """Some visitors, an operator, and what is said of them all."""
    for host in (IN_FILE, IN_STORE):
        people = [running.visitor(host) for _ in range(INSIDE + WAITING)]
        for visitor in people[:INSIDE]:
            visitor.wait_until_in()
            assert not visitor.get().waiting
        if host == IN_STORE:  # the API allows no limit under 200, which would take 200 visitors
            api = Api(running.control, memory.token)
            room = api.ask("GET", memory.paths["rooms"]).result[0]["id"]
            assert api.ask("PATCH", f"{memory.paths['rooms']}/{room}", {"queue_all": True}).result
            time.sleep(2)  # until the process has read its store
        for visitor in people[INSIDE:]:
            assert visitor.get().waiting
            time.sleep(0.01)  # who come in one millisecond are put in order at random
        time.sleep(3)  # until the update that all were told
        for visitor in people[INSIDE:]:
            assert visitor.get().waiting, (host, running.status())
        memory.inside[host] = [visitor.cookies for visitor in people[:INSIDE]]
        memory.waiting[host] = [visitor.cookies for visitor in people[INSIDE:]]
    memory.dashboard = sign_in(running, name="ada", password=PASSWORD.replace(" ", "+"))
    api = Api(running.control, memory.token)
    memory.answers = {what: api.ask("GET", path).result for what, path in memory.paths.items()}
    memory.commands = {command: said(command, *store) for command in COMMANDS}
    for _ in range(13):
        time.sleep(5)  # until a whole minute of analytics is written
        for host in (IN_FILE, IN_STORE):
            for cookies in memory.waiting[host]:
                assert Visitor(running.address, host, cookies).get().waiting
            for cookies in memory.inside[host]:
                assert not Visitor(running.address, host, cookies).get().waiting
    memory.at_s = time.time()


def shapes(folder: Path) -> Iterator[tuple[str, list[str], list[str], Callable[[], bytes]]]:
    """Each shape of a process: its name, how it is started, where its store is, and what is kept
    outside the data directory.
    """
    data = folder / "serve" / "data"
    yield "serve", ["serve"], ["--data", str(data)], lambda: b""
    server, postgres = RedisServer(folder / "redis"), Postgres()
    try:
        store = postgres.new_database()
        data = folder / "edge" / "data"

        def kept() -> bytes:
            server.client().save()
            dump = [tool("pg_dump"), "--inserts", "--no-owner", store]
            (data / "store.sql").write_bytes(
                subprocess.run(dump, capture_output=True, check=True).stdout
            )
            return (folder / "redis" / "dump.rdb").read_bytes()

        options = ["edge", "--redis", server.url, "--store", store]
        yield "edge", options, ["--data", str(data), "--store", store], kept
    finally:
        server.kill()
        postgres.close()


def write(executable: str, version: str) -> None:
    """Writes the fixtures of a version."""
    conftest.GREENROOM = executable
    with tempfile.TemporaryDirectory() as name, conftest.application() as application:
        folder = Path(name)
        for shape, options, store, kept in shapes(folder):
            start = StartGreenroom(folder / shape)
            start.data.mkdir(parents=True)
            (start.folder / "greenroom.toml").write_text(CONFIG.format(origin=application.url))
            memory = Memory()
            memory.token = said("token create upgrade --scope edit --scope analytics", *store)[0]
            subprocess.run(
                [
                    executable,
                    "account",
                    "add",
                    "ada",
                    "--role",
                    "admin",
                    "--password-stdin",
                    *store,
                ],
                input=PASSWORD + "\n",
                text=True,
                check=True,
            )
            places = [
                "--listen",
                "127.0.0.1:0",
                "--control",
                "127.0.0.1:0",
                "--data",
                str(start.data),
            ]
            file = ["--config", str(start.folder / "greenroom.toml")]
            running = start.run(*options, *file, *places).wait_until_ready()
            memory.paths = configure(Api(running.control, memory.token), application.url)
            time.sleep(2)  # until the process has read its store
            live(running, memory, store)
            outside = kept()
            running.kill()
            memory.minutes = minutes(memory, start.data)
            if outside:
                (start.data / "dump.rdb").write_bytes(outside)
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(start.data, "data")
            target = FIXTURES / f"installation_{version}_{shape}"
            target.with_suffix(".tar.xz.b64").write_bytes(
                base64.encodebytes(lzma.compress(packed.getvalue(), preset=9))
            )
            target.with_suffix(".json").write_text(json.dumps(vars(memory), indent=1) + "\n")


if __name__ == "__main__":
    write(*sys.argv[1:])
