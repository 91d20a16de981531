"""Reads the configuration file or options, and finds all problems, each with key and line."""

import os
import re
import ssl
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from greenroom.config_file.addresses import (
    address_of,
    address_problems,
    analytics_problems,
    collector_problems,
    decide_problems,
    default_host_problems,
    exposure_notes,
    is_behind_proxy,
    listener_problems,
    loop_problems,
    network_problems,
    origin_problems,
    socket_notes,
    socket_origin_problems,
    socket_problems,
    store_problems,
    store_url,
    trusted_header_problems,
)
from greenroom.config_file.documents import TABLES as DOCUMENT_TABLES
from greenroom.config_file.documents import capacity_problems, foreign_form_notes, read_documents
from greenroom.config_file.oidc_entries import read_oidc
from greenroom.config_file.process_config import ORIGINS_MAX, ProcessConfig
from greenroom.config_file.sections import (
    mail_notes,
    prometheus_notes,
    read_crawlers,
    read_pass_keys,
    read_prometheus,
    read_sending,
)
from greenroom.config_file.shared import read_shared
from greenroom.config_file.toml_lines import KeyLines
from greenroom.configuration.file_tables import (
    FILE_ZONE_ID,
    NamedFiles,
    file_entry,
    read_text,
    read_toml,
    step,
    unknown_keys,
)
from greenroom.errors import InvalidConfig, Problem
from greenroom.gateway.origin.address import Origin
from greenroom.lookups.places import UnusableDatabase, open_database
from greenroom.model.configuration import Configuration
from greenroom.model.fields import specs
from greenroom.model.room import Room
from greenroom.model.route import host_problems
from greenroom.model.status_page import StatusPage
from greenroom.model.zone import Zone
from greenroom.settings.process import SECTIONS, SOCKET_FILE, Address, OriginEntry, Server, Tls
from greenroom.web.api_shapes import read_nested

FILE_MAX = 64 * 1024 * 1024
"""60 templates of the largest size; a mistyped path to something huge is refused."""

TABLES = ("origins", *SECTIONS, "dashboard", "crawlers", "prometheus", *DOCUMENT_TABLES)
LISTENERS = ("listen", "control")
DATABASES = ("geo_database", "asn_database")
TAKEN_AS_WRITTEN = (
    "always_use_https", "answer_live_checks", "ambiguous_paths", "analytics", "default_host", "drain_seconds", "merge_slashes", "other_hosts",
    "pass_well_known",
    "search_engine_crawler_bypass", "socket_mode", "trust_forwarded_host",
    "trusted_headers", "trusted_proxies",
)  # fmt: skip
"""Server keys copied unchanged."""

IN_FILE_ZONE = (
    "always_use_https",
    "search_engine_crawler_bypass",
    "ambiguous_paths",
    "merge_slashes",
    "pass_well_known",
)
"""Server keys that also are settings of the file's zone."""

CERTIFICATES = ("tls", "control_tls")
COLLECTORS = ("tracing", "metrics")
WITH_DEFAULTS = ("analytics_retention", "limits", "log", "tracing", "metrics", "health")
"""Sections that exist although the file has none."""


class Overrides(NamedTuple):
    """Command-line options that override the file."""

    values: Mapping[str, str]
    options: Mapping[str, str] = {}

    def option(self, key: str) -> str:
        return self.options.get(key, f"--{key.replace('_', '-')}")


def load_config(
    path: Path, overrides: Overrides | None = None, *, needs_origin: bool | None = True
) -> ProcessConfig:
    """As `read_config`; an unreadable file is a Problem."""
    text = read_text(path, "file", FILE_MAX)
    if isinstance(text, Problem):
        raise InvalidConfig([text])
    return read_config(text, path, overrides, needs_origin=needs_origin)


def read_config(
    text: str,
    path: Path | None = None,
    overrides: Overrides | None = None,
    *,
    needs_origin: bool | None = True,
) -> ProcessConfig:
    """`path` is where the text was read, and where relative paths start.

    `needs_origin`: rooms need an origin, because requests are forwarded from here; None: unless the
    file has `decide`. Raises InvalidConfig with every problem, each with its line.
    """
    try:
        raw = read_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig([_syntax_problem(str(error), text)]) from None
    except RecursionError:
        raise InvalidConfig([Problem("file", "is nested too deeply")]) from None
    given = overrides or Overrides({})
    options = {key: given.option(key) for key in given.values}
    return config_of(
        {**raw, **given.values}, path, KeyLines(text), options, needs_origin=needs_origin
    )


def config_of(
    raw: Mapping[str, Any],
    path: Path | None = None,
    lines: KeyLines | None = None,
    options: Mapping[str, str] | None = None,
    *,
    needs_origin: bool | None = True,
) -> ProcessConfig:
    """`options` names the command-line option behind a pointer."""
    reading = _Reading(raw, path, lines, needs_origin)
    config = reading.config()
    if config is None:
        raise InvalidConfig(
            _placed(reading.problems, lines, options or {}),
            [str(file) for file in reading.files.paths],
        )
    return config


def _placed(
    problems: list[Problem], lines: KeyLines | None, options: Mapping[str, str]
) -> list[Problem]:
    """Adds each problem's line, or its option."""
    placed = []
    for problem in problems:
        if problem.pointer in options:
            placed.append(Problem(options[problem.pointer], problem.reason))
        else:
            line = problem.line or (lines.line(problem.pointer) if lines else 0)
            placed.append(Problem(problem.pointer, problem.reason, line))
    return sorted(placed, key=lambda problem: problem.line)


def _syntax_problem(message: str, text: str) -> Problem:
    # tomllib tells the place in its message only.
    found = re.search(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$", message)
    line = text.count("\n") + 1 if found and not found[1] else int(found[1]) if found else 0
    reason = message[: found.start()] if found else message
    return Problem("file", f"is not TOML: {reason[:1].lower()}{reason[1:]}", line)


def _misplaced(unknown: list[Problem]) -> list[Problem]:
    """Says where a key belongs that is right elsewhere."""
    elsewhere = dict.fromkeys(specs(Room), "belongs below [[rooms]]")
    elsewhere["zones"] = "is for `greenroom apply`; rooms of this file are [[rooms]]"
    return [Problem(one.pointer, elsewhere.get(one.pointer, one.reason)) for one in unknown]


class _Part(NamedTuple):
    fields: dict[str, Any]
    notes: tuple[Any, ...] = ()


class _Reading:
    """Collects problems while parts become values."""

    def __init__(
        self,
        raw: Mapping[str, Any],
        path: Path | None,
        lines: KeyLines | None,
        needs_origin: bool | None = True,
    ) -> None:
        self.problems: list[Problem] = []
        self._raw = raw
        self._path = path
        self._needs_origin = needs_origin if needs_origin is not None else "decide" not in raw
        self._answers = not ("decide" in raw and not raw.keys() & {"origin", "origins"})
        self._folder = path.parent if path else Path()
        self.files = NamedFiles(self._folder)
        if path:
            self.files.path(path.name)
        self._text_line: Callable[[str], int] = lines.text_line if lines else lambda _pointer: 0

    def config(self) -> ProcessConfig | None:
        raw = self._raw
        self.problems += _misplaced(unknown_keys(raw, ["origin", *specs(Server), *TABLES]))
        server = read_nested(
            Server,
            "",
            {key: value for key, value in raw.items() if key in specs(Server)},
            self.problems,
        )
        sections = self._sections()
        listeners = self._listeners()
        origin, origins = self._origins(listeners)
        known = server or Server()
        documents, own = self._documents(sections)
        parts = [
            own,
            self._lookups(known),
            self._sending(sections, documents.rooms.records()),
            self._faces(known, documents.status_pages.records()),
        ]
        tls = {name: self._tls(name, sections[name]) for name in CERTIFICATES}
        data = self._data(known.data)
        shared = read_shared(server, self.problems) if server else None
        if self.problems or server is None:
            return None
        fields = {name: value for part in parts for name, value in part.fields.items()}
        if documents.rooms or documents.health_checks:
            documents = documents.changed(0, [file_entry(_file_zone(server, origin))])
        return ProcessConfig(
            **fields,
            documents=documents,
            listen=listeners["listen"],
            control=listeners["control"],
            decide=address_of(server.decide),
            data=data,
            store=store_url(server.store, self._folder),
            shared=shared,
            origin=origin,
            origins=origins,
            **{key: getattr(server, key) for key in TAKEN_AS_WRITTEN},
            tls=tls["tls"],
            control_tls=tls["control_tls"],
            **{name: sections[name] or SECTIONS[name]() for name in WITH_DEFAULTS},
            path=self._path,
            files=tuple(self.files.paths),
            notes=_notes(server, listeners["control"], tls, parts, documents.rooms.records()),
        )

    def _documents(self, sections: Mapping[str, Any]) -> tuple[Configuration, _Part]:
        """The documents without problems of their own."""
        read = read_documents(self._raw, self.files, self._text_line)
        self.problems += read.problems
        documents = Configuration().changed(0, read.entries)
        rooms = {read.places[room.id]: room for room in documents.rooms.records()}
        checks = documents.health_checks.records()
        for room, name, reason in capacity_problems(rooms.values(), checks, self._answers):
            self.problems.append(Problem(f"{read.places[room.id]}.{name}", reason))
        pass_keys = read_pass_keys(sections["native_pass"], self.files, rooms, self.problems)
        return documents, _Part({"pass_keys": pass_keys}, tuple(read.notes))

    def _lookups(self, server: Server) -> _Part:
        self._check_addresses(server)
        crawlers = read_crawlers(self._raw.get("crawlers", []), self.files, self.problems)
        databases = {key: self._database(key, getattr(server, key, "")) for key in DATABASES}
        return _Part({"crawlers": crawlers, **databases})

    def _sending(self, sections: Mapping[str, Any], rooms: Iterable[Room]) -> _Part:
        sending = read_sending(
            sections["notifications"], sections["outbound"], self.files, self.problems
        )
        logins = read_prometheus(self._raw.get("prometheus", []), self.files, self.problems)
        notes = mail_notes(sending.mail_server)
        if not self._answers:
            notes += prometheus_notes(rooms, sending.outbound)
        return _Part({"sending": sending, "prometheus_logins": logins}, notes)

    def _faces(self, server: Server, pages: Iterable[StatusPage]) -> _Part:
        oidc = read_oidc(self._raw.get("dashboard", {}), self.files, self.problems)
        listen = server.status_listen
        if listen:
            self.problems += address_problems("status_listen", listen)
        elif any(not page.listen for page in pages):
            reason = (
                "is required for [[status_pages]] without `listen`: the address where they are"
                " served"
            )
            self.problems.append(Problem("status_listen", reason))
        return _Part({"oidc": oidc, "status_listen": address_of(listen)})

    def _check_addresses(self, server: Server) -> None:
        self.problems += decide_problems(server) + socket_problems(server)
        self.problems += store_problems("store", server.store) if server.store else []
        self.problems += analytics_problems("analytics", server.analytics)
        for index, network in enumerate(server.trusted_proxies):
            self.problems += network_problems(step("trusted_proxies", index), network)
        for index, name in enumerate(server.trusted_headers):
            self.problems += trusted_header_problems(step("trusted_headers", index), name)
        self.problems += default_host_problems(server.default_host)

    def _sections(self) -> dict[str, Any]:
        sections = {name: self._section(name, kind) for name, kind in SECTIONS.items()}
        for name in COLLECTORS:
            if sections[name]:
                self.problems += collector_problems(f"{name}.endpoint", sections[name].endpoint)
        return sections

    def _section(self, name: str, kind: type) -> Any:
        if name not in self._raw:
            return None
        raw = self._raw[name]
        if name == "log" and isinstance(raw, dict) and isinstance(raw.get("access"), bool):
            raw = {
                **raw,
                "access": "json" if raw["access"] else "off",
            }  # deprecated in 1.0; goes with 2.0
        return read_nested(kind, name, raw, self.problems)

    def _listeners(self) -> dict[str, Address]:
        defaults = Server()
        found = {}
        for key in LISTENERS:
            text = self._raw.get(key, getattr(defaults, key))
            if not isinstance(text, str):
                continue  # reported as a wrong type already
            self.problems += address_problems(key, text)
            if address := address_of(text):
                found[key] = address
        if len(found) == len(LISTENERS):
            self.problems += listener_problems(found["control"], found["listen"])
        return found

    def _origins(self, listeners: Mapping[str, Address]) -> tuple[Origin | None, dict[str, Origin]]:
        """The main origin and those of single hosts; bad ones are reported and left out."""
        raw = self._raw.get("origins", {})
        if not isinstance(raw, dict):
            self.problems.append(Problem("origins", f"must be a table of host = URL, not {raw!r}"))
            raw = {}
        if len(raw) > ORIGINS_MAX:
            self.problems.append(Problem("origins", f"must be at most {ORIGINS_MAX} entries"))
        if self._needs_origin and "origin" not in self._raw and self._raw.get("rooms"):
            self.problems.append(
                Problem(
                    "origin",
                    "is required: the URL of your application, such as http://127.0.0.1:3000",
                )
            )
        for host in raw:
            patterned = (
                [Problem(step("origins", host), "must be one host name")]
                if host.startswith("*")
                else []
            )
            self.problems += patterned or host_problems(step("origins", host), host)
        main = (
            self._origin("origin", self._raw["origin"], listeners)
            if "origin" in self._raw
            else None
        )
        others = {
            host: self._origin(step("origins", host), written, listeners)
            for host, written in raw.items()
        }
        return main, {host: origin for host, origin in others.items() if origin}

    def _origin(self, pointer: str, raw: Any, listeners: Mapping[str, Address]) -> Origin | None:
        url_pointer = pointer if isinstance(raw, str) else step(pointer, "url")
        entry = read_nested(
            OriginEntry, pointer, {"url": raw} if isinstance(raw, str) else raw, self.problems
        )
        if entry is None:
            return None
        wrong = self._url_problems(url_pointer, entry.url, listeners)
        self.problems += wrong
        if wrong:
            return None
        ca_file = str(self._folder / entry.ca_file) if entry.ca_file else ""
        try:
            origin = Origin.of(
                entry.url,
                host_header=entry.host_header,
                verify=entry.verify,
                ca_file=ca_file,
                server_name=entry.server_name,
            )
            origin.tls()
        except (ValueError, OSError) as error:
            self.problems.append(
                Problem(
                    pointer,
                    (
                        f"{ca_file}: {error.strerror or error}"
                        if isinstance(error, OSError)
                        else str(error)
                    ),
                )
            )
            return None
        return origin

    def _url_problems(
        self, pointer: str, url: str, listeners: Mapping[str, Address]
    ) -> list[Problem]:
        if url.startswith(SOCKET_FILE):
            written = [self._raw.get(key, "") for key in (*LISTENERS, "decide", "status_listen")]
            return socket_origin_problems(
                pointer, url, [text for text in written if isinstance(text, str)]
            )
        return origin_problems(pointer, url) or loop_problems(pointer, url, listeners)

    def _tls(self, section: str, tls: Tls | None) -> Tls | None:
        """With absolute paths, after loading them: finds keys with a pass phrase or of another
        certificate.
        """
        if tls is None:
            return None
        whole = Tls(cert=str(self.files.path(tls.cert)), key=str(self.files.path(tls.key)))
        unreadable = [
            (key, reason) for key in specs(Tls) if (reason := _unreadable(getattr(whole, key)))
        ]
        self.problems += [
            Problem(step(section, key), f"cannot read {getattr(whole, key)}: {reason}")
            for key, reason in unreadable
        ]
        if not unreadable:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                    whole.cert, whole.key, password=lambda: ""
                )
            except (OSError, ValueError) as error:
                self.problems.append(
                    Problem(section, f"the certificate and the key do not match: {error}")
                )
        return whole

    def _database(self, key: str, written: str) -> Path | None:
        """Checks that the database can be opened."""
        if not written:
            return None
        path = self.files.path(written)
        try:
            open_database(path)
        except UnusableDatabase as error:
            self.problems.append(Problem(key, str(error)))
        return path

    def _data(self, written: str) -> Path:
        if written:
            try:
                return (self._folder / Path(written).expanduser()).absolute()
            except RuntimeError:
                self.problems.append(
                    Problem(
                        "data",
                        f"starts with the home directory of an unknown user: {written[:60]!r}",
                    )
                )
                return Path()
        try:
            return default_data()
        except RuntimeError:
            self.problems.append(
                Problem("data", "is required, because this user has no home directory")
            )
            return Path()


def _notes(
    server: Server,
    control: Address,
    tls: Mapping[str, Tls | None],
    parts: Iterable[_Part],
    rooms: Iterable[Room],
) -> tuple[str, ...]:
    https = bool(tls["tls"] or is_behind_proxy(server) or server.always_use_https)
    private = bool(tls["control_tls"] or server.trusted_proxies)
    return (
        *exposure_notes(control, private=private),
        *socket_notes(server),
        *(note for part in parts for note in part.notes),
        *foreign_form_notes(list(rooms), https),
    )


def _file_zone(server: Server, origin: Origin | None) -> Zone:
    return Zone(
        id=FILE_ZONE_ID,
        name="file",
        origin=origin.url if origin else "",
        limit_floor=1,
        **{key: getattr(server, key) for key in IN_FILE_ZONE},
    )


def _unreadable(path: str) -> str:
    try:
        with open(path, "rb"):
            return ""
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return getattr(error, "strerror", None) or str(error)


def default_data() -> Path:
    """`$XDG_STATE_HOME/greenroom`, or `~/.local/state/greenroom`. Raises RuntimeError when the user
    has no home.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "greenroom"
