"""Output of the commands: a configuration in plain words, problems one per line, progress of a
start.
"""

import http.client
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from greenroom.config_file.addresses import address_of, store_shown
from greenroom.config_file.documents import SLICES
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.served import served_hosts
from greenroom.errors import Problem
from greenroom.model.branding import Branding
from greenroom.model.event import OVERRIDES, Event
from greenroom.model.fields import plural, printable, specs
from greenroom.model.room import Room
from greenroom.model.route import CookieAttributes
from greenroom.model.rule import Rule
from greenroom.settings.process import Address, Server
from greenroom.web.time_format import plain_moment

TOLD = (
    "id",
    "name",
    "host",
    "path",
    "additional_routes",
    "total_active_users",
    "new_users_per_minute",
    "queueing_method",
)
"""Fields of a room that its heading shows; the others are shown when they are not the default."""

SECTIONS = ("limits", "log", "tracing", "metrics", "health", "analytics_retention")
"""Keys that are not the default are shown."""

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
"""The only control sequences that are printed."""

_STYLE = re.compile("(\x1b\\[[01]m)")
_ITEMS = {
    "ip": ("address or network", "addresses and networks"),
    "hostname": ("host name", "host names"),
    "asn": ("autonomous system", "autonomous systems"),
}


def say(line: str = "") -> None:
    _write(sys.stdout, line)


def complain(line: str) -> None:
    _write(sys.stderr, line)


def _write(stream: TextIO, line: str) -> None:
    """Control characters are escaped: names and notes come from the API, and from files that others
    wrote.

    A closed pipe (`greenroom serve | head`) does not stop greenroom: the rest is discarded.
    """
    try:
        stream.write(
            "".join(
                part if part in (BOLD, PLAIN) else printable(part) for part in _STYLE.split(line)
            )
            + "\n"
        )
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain_in_lines(text: str) -> None:
    """For reasons of several lines: all problems of a file, an expression with its fault marked."""
    for line in text.split("\n"):
        complain(line)


def complain_of(problems: Iterable[Problem], file: str = "") -> None:
    """Every problem on a line of its own, as editors and grep like it: file:line: key: reason."""
    for problem in problems:
        place = f"{file}:{problem.line}: " if file and problem.line else f"{file}: " if file else ""
        complain_in_lines(f"{place}{problem.pointer}: {problem.reason}")


def rooms_outside(rooms: Iterable[Room], root_path: str) -> list[str]:
    """Names of rooms without a path at, below or above this one."""
    root = root_path.rstrip("/") + "/"

    def meets(path: str) -> bool:
        path = path.rstrip("/") + "/"
        return path.startswith(root) or root.startswith(path)

    return [room.name for room in rooms if not any(meets(route.path) for route in room.routes)]


def show_config(config: ProcessConfig) -> None:
    forwards = config.origin or config.origins or not config.rooms
    if forwards:
        say(f"visitors   {config.listen.url('https' if config.tls else 'http')}")
    say(f"control    {config.control.url('https' if config.control_tls else 'http')}")
    say(f"data       {config.data}")
    if config.origin:
        say(f"origin     {config.origin.url}")
    for host, origin in config.origins.items():
        say(f"origin     {origin.url} for {host}")
    if served_hosts(config) is not None:
        say("hosts      others than those of rooms, zones and origins get 421")
    elif forwards and not config.origin:
        say(
            "hosts      others than those of zones and origins get 421, because there is no origin"
            " for every host"
        )
    else:
        say("hosts      every host is served")
    if not forwards:
        say(
            "origin     none: for greenroom decide or a Python application; greenroom serve and"
            " edge require one"
        )
    for key, value in _changed(config, Server()):
        say(f"{key} = {value}")
    for section in SECTIONS:
        record = getattr(config, section)
        for key, value in _changed(record, type(record)()):
            say(f"{section}.{key} = {value}")
    for named in config.lists:
        say(
            f"list       ${named.name}: {len(named.items)} {plural(len(named.items), *_ITEMS[named.kind])}"
        )
    for line in beside_rooms(config):
        say(line)
    for room in config.rooms:
        say()
        for line in (
            *room_lines(room),
            *event_lines(config.documents.events_of(room.id)),
            *rule_lines(config.documents.rules_of(room.id)),
        ):
            say(line)
    for note in config.notes:
        say(f"note: {note}")


def beside_rooms(config: ProcessConfig) -> Iterator[str]:
    for tables in SLICES:
        yield from tables.lines(config.documents)
    for crawler in config.crawlers:
        yield f"crawler    {crawler.name}: {crawler.category}"
    if server := config.sending.mail_server:
        yield f"mail       {server.host}:{server.port} as {server.sender}"
    if config.oidc:
        yield f"sign-in    {config.oidc.entry.issuer}"


def room_lines(room: Room) -> list[str]:
    if room.suspended:
        allows = "suspended: all visitors go to the origin"
    elif room.queueing_method == "passthrough":
        allows = "all visitors go to the origin and are counted"
    else:
        allows = (
            f"{room.total_active_users} {plural(room.total_active_users, 'active user')},"
            f" {room.new_users_per_minute} new per minute, {room.queueing_method}"
        )
    lines = [f"room {room.name}: {allows}"]
    lines += [
        "  covers"
        f" {route.path + ' on every host' if route.host == '*' else route.host + route.path}"
        for route in room.routes
    ]
    for name in specs(Room):
        value = getattr(room, name)
        if name in TOLD or value == _default(name):
            continue
        lines.append(f"  {name} = {_shown(name, value)}")
    return lines


def rule_lines(rules: Iterable[Rule]) -> list[str]:
    return [
        f"  {'bypass' if rule.enabled else 'switched off'}: {' '.join(rule.expression.split())}"
        for rule in rules
    ]


def event_lines(events: Iterable[Event]) -> list[str]:
    lines = []
    for event in sorted(events, key=lambda event: event.opens_ms):
        times = f"{plain_moment(event.event_start_ms)} to {plain_moment(event.event_end_ms)}"
        how = ", places drawn at the start" if event.shuffle_at_event_start else ""
        before = (
            f", pre-queue from {plain_moment(event.prequeue_start_ms)}{how}"
            if event.prequeue_start_ms is not None
            else ""
        )
        lines.append(
            f"  event {event.name}: {'suspended, ' if event.suspended else ''}{times}{before}"
        )
        changes = [(name, getattr(event, name)) for name in OVERRIDES]
        lines += [
            f"    {name} = {_shown(name, value)}" for name, value in changes if value is not None
        ]
    return lines


_PLAIN = Room(name="plain", host="*", total_active_users=1, new_users_per_minute=1)


def _default(name: str) -> object:
    return getattr(_PLAIN, name)


def _shown(name: str, value: object) -> str:
    if name == "store":
        return store_shown(str(value))
    if name == "custom_page_html":
        return f"{len(str(value))} characters"
    if isinstance(value, CookieAttributes):
        return f"samesite {value.samesite}, secure {value.secure}"
    if isinstance(value, Address):
        return str(value)
    if isinstance(value, Branding):
        return ", ".join(name for name in specs(Branding) if getattr(value, name))
    if name == "branding_messages" and isinstance(value, tuple):
        return ", ".join(message.language for message in value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _changed(record: object, defaults: object) -> list[tuple[str, str]]:
    shown = ("listen", "control", "data")
    names = [name for name in specs(type(defaults)) if name not in shown and hasattr(record, name)]
    return [
        (name, _shown(name, value))
        for name in names
        if (value := getattr(record, name)) is not None and value != getattr(defaults, name)
    ]


# A connection to the control listener of a running greenroom, by address and port or over its
# Unix socket.


def control_connection(written: str, timeout_s: float) -> http.client.HTTPConnection:
    """Not connected yet. Raises http.client.InvalidURL for a port that is not a number."""
    address = address_of(written)
    if address is not None and address.path:
        return _OverSocketFile(address.path, timeout_s)
    return http.client.HTTPConnection(written, timeout=timeout_s)


class _OverSocketFile(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
