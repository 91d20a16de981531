"""The settings of a process: every key of the configuration file outside the rooms, with its
bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from greenroom.alerts.settings import NotificationSettings, Outbound, Sending
from greenroom.config.alert_entries import Alerting
from greenroom.config.native_pass_entries import NativePass
from greenroom.config.shared import NAME, NAME_MAX, NAME_PATTERN, Shared
from greenroom.decision.forwarded import TRUSTED_HEADERS
from greenroom.decision.native_pass import PassKeys
from greenroom.errors import Problem
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.wire.limits import Limits
from greenroom.model.crawler import Crawler
from greenroom.model.event import Event
from greenroom.model.fields import spec
from greenroom.model.health_check import REGIONS, HealthCheck
from greenroom.model.oidc import OidcSettings
from greenroom.model.room import Room
from greenroom.model.rule import Rule, RuleList
from greenroom.model.status_page import PageSettings
from greenroom.model.zone import Zone
from greenroom.request.path_readings import PathPolicy

ORIGINS_MAX = 1_000
ROOMS_MAX = 1_000
"""Keeps a broken generated file from exhausting the memory."""


SOCKET_FILE = "unix:"
"""Prefix of a Unix socket's path."""


class Address(NamedTuple):
    """Port 0 lets the system choose one. A Unix socket has only `path`."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{SOCKET_FILE}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, scheme: str) -> str:
        """For people. No URL names a Unix socket, so its address is written alone."""
        return str(self) if self.path else f"{scheme}://{self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Top-level keys, as written."""

    listen: str = spec(
        "address and port for visitors, or `unix:` and the path of a Unix socket",
        "127.0.0.1:8080",
        high=300,
    )
    control: str = spec(
        "address and port of the control listener (/metrics, /healthz, /readyz, /status), or a Unix"
        " socket",
        "127.0.0.1:8081",
        high=300,
    )
    status_listen: str = spec(
        "listen address of the public status pages (`[[status_pages]]`), or a Unix socket; empty:"
        " there are none",
        "",
        example="0.0.0.0:8082",
        high=300,
    )
    decide: str = spec(
        "address and port where other proxies (`trusted_proxies`) ask for decisions, or a Unix"
        " socket, where every program that can open it may ask; empty: they cannot",
        "",
        high=300,
    )
    socket_mode: str = spec(
        "permissions of the files of Unix sockets: who may write to the file is trusted as a proxy",
        "0660",
        pattern="0?[0-7]{3}",
        pattern_words="be three octal digits such as 0660",
    )
    data: str = spec(
        "directory for keys and journals; default `$XDG_STATE_HOME/greenroom` or"
        " `~/.local/state/greenroom`; a relative path starts at the directory of the configuration"
        " file",
        "",
        high=4096,
    )
    store: str = spec(
        "database of the configuration made through the API: `sqlite:///FILE` or"
        " `postgresql://USER:PASSWORD@HOST/DATABASE`; default: `config.db` in the data directory",
        "",
        high=2048,
    )
    analytics: str = spec(
        "where analytics are kept: `off`, or `clickhouse://USER:PASSWORD@HOST:PORT/DATABASE`; "
        "default: `analytics.duckdb` in the data directory",
        "",
        high=2048,
    )
    redis: str = spec(
        "Redis server of the ledgers that several processes share: `redis://`, `rediss://`,"
        " `unix://`, `redis+sentinel://` or `redis+cluster://`; empty: the process keeps its own"
        " ledgers",
        "",
        high=2048,
    )
    datacenter: str = spec(
        "name of this data center; each data center has one Redis server",
        "here",
        pattern=NAME_PATTERN,
        pattern_words=f"be {NAME}",
        low=1,
        high=NAME_MAX,
    )
    datacenters: tuple[str, ...] = spec(
        "names of all data centers that share the rooms; empty: only this one", (), high=300
    )
    datacenter_fence_seconds: int = spec(
        "without contact with the coordinator for so long a data center stops admitting visitors"
        " and renewing sessions, and the others get its capacity when its last session must have"
        " ended; 0: never, an operator takes a dead data center off the list",
        180,
        unit="seconds",
        low=0,
        high=86_400,
    )
    global_redis: str = spec(
        "Redis server shared by all data centers, used by the coordinator; empty: the one of this"
        " data center",
        "",
        high=2048,
    )
    always_use_https: bool = spec(
        "visitors always use HTTPS: cookies marked `auto` become Secure and SameSite=None", False
    )
    trusted_proxies: tuple[str, ...] = spec(
        "addresses and networks (`10.0.0.0/8`) whose X-Forwarded-* and Forwarded headers are"
        " trusted",
        (),
        high=1_000,
    )
    geo_database: str = spec(
        ".mmdb file with countries or cities, for `ip.src.*` in rules; without it only countries"
        " are known",
        "",
        high=4096,
    )
    asn_database: str = spec(
        ".mmdb file with autonomous systems, for `ip.src.asnum`", "", high=4096
    )
    search_engine_crawler_bypass: bool = spec(
        "verified search-engine crawlers bypass every room; they are verified by address, never by"
        " User-Agent",
        False,
    )
    trust_forwarded_host: bool = spec(
        "also trust X-Forwarded-Host from trusted proxies; enable it only if your proxies always"
        " set it",
        False,
    )
    other_hosts: str = spec(
        "requests for a host that no room, zone or entry of `[origins]` names, when rooms or zones"
        " name hosts: `refuse` them with 421, or `pass` them to the origin, around every room",
        "refuse",
        choices=("refuse", "pass"),
    )
    trusted_headers: tuple[str, ...] = spec(
        "headers that the origin gets when a trusted proxy sends them; from everyone else they are"
        " dropped",
        TRUSTED_HEADERS,
        high=100,
    )
    default_host: str = spec(
        "host of HTTP/1.0 requests that name none; empty: the host of all rooms when there is only"
        " one, else the address of the listener",
        "",
        high=255,
    )
    ambiguous_paths: str = spec(
        "paths that programs read in different ways (`%2F`, `%3B`, `;`, double encoding) and raw"
        " UTF-8: `auto` passes them on as they came where every reading leads to the same room and"
        " rules, and refuses them with 400 elsewhere; `refuse`: always; `pass`: the room that"
        " covers any reading counts",
        "auto",
        choices=("auto", "refuse", "pass"),
    )
    merge_slashes: bool | str = spec(
        "send `//` in a path to the origin as `/`; `auto`: only where both lead to different rooms"
        " or rules; false: as it came, and the room that covers either counts",
        "auto",
        choices=(False, True, "auto"),
    )
    pass_well_known: bool = spec(
        "send /robots.txt and /.well-known/acme-challenge/ to the origin around every room, as a"
        " bypass rule of each room",
        True,
    )
    answer_live_checks: bool = spec(
        "answer /.well-known/greenroom/live on the listener for visitors with 200 for greenroom"
        " itself, whatever the rooms do: for health checks of a proxy in front. false: such requests"
        " go the way of all others",
        True,
    )
    drain_seconds: int = spec(
        "how long requests in progress may take after SIGTERM before they are cut off",
        30,
        unit="seconds",
        low=0,
        high=3600,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginEntry:
    """An origin written as a table; a plain string is the table with only `url`."""

    url: str = spec(
        "`http://host[:port]`, `https://host[:port]`, or `unix:/path` of a Unix socket; requests"
        " keep their own path",
        low=1,
        high=2048,
    )
    host_header: str = spec(
        "Host header sent to the origin; empty: the one that the visitor sent", "", high=255
    )
    verify: bool = spec("https: verify the origin's certificate", True)
    ca_file: str = spec(
        "https: PEM file with the certificate authorities to trust instead of the system's",
        "",
        high=4096,
    )
    server_name: str = spec(
        "https: name that the certificate must have, instead of the host of the URL", "", high=253
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """`[tls]` (visitors) and `[control_tls]`. Paths are relative to the file's directory."""

    cert: str = spec("PEM file with the certificate and its chain", low=1, high=4096)
    key: str = spec("PEM file with the private key", low=1, high=4096)


ACCESS_LOGS = ("off", "common", "combined", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    format: str = spec(
        "console for people, json for machines", "console", choices=("console", "json")
    )
    level: str = spec(
        "lowest severity that is logged", "info", choices=("debug", "info", "warning", "error")
    )
    access: str = spec(
        "access log, one line per request: common and combined as web servers write it, json with"
        " room and verdict",
        "off",
        choices=ACCESS_LOGS,
    )
    access_file: str = spec(
        "file of the access log, which may be moved away by logrotate; empty: standard output",
        "",
        high=4096,
    )
    queries: bool = spec(
        "query strings in the access log; they may hold secrets of your visitors", False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    probe: bool = spec("probe from here; false: only agents probe (`greenroom probe`)", True)
    region: str = spec(
        "region that probes from here count for; empty: all of them, as long as no agents have"
        " joined",
        "",
        choices=("", *REGIONS),
    )
    private_addresses: bool = spec(
        "checks may be on private and loopback addresses; link-local ones they never may", True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsRetention:
    minutes_days: int = spec("minutes of each room", 31, unit="days", low=1, high=3_660)
    hours_days: int = spec("hours of each room", 396, unit="days", low=1, high=36_600)
    days_days: int = spec("days of each room; 0 = for ever", 0, unit="days", low=0, high=36_600)


SECTIONS: dict[str, type] = {
    "tls": Tls,
    "control_tls": Tls,
    "limits": Limits,
    "log": Log,
    "health": Health,
    "notifications": NotificationSettings,
    "outbound": Outbound,
    "analytics_retention": AnalyticsRetention,
    "native_pass": NativePass,
}
"""Tables that are one record each."""


class UnitFault(NamedTuple):
    """Why one room, zone, list, check or page cannot be used; everything else can.

    `reason` may name things of other zones; `told` is for the editors of `zone_id` alone.
    """

    unit: str
    reason: str
    zone_id: str = ""
    told: str = ""

    @property
    def problem(self) -> Problem:
        """For operators of the whole installation."""
        return Problem(self.unit, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked configuration; only `read_config` makes it."""

    rooms: tuple[Room, ...]
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    """By room id."""
    rules: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    """By room id."""
    lists: tuple[RuleList, ...] = ()
    health_checks: tuple[HealthCheck, ...] = ()
    crawlers: tuple[Crawler, ...] = ()
    """The operator's own, besides the built-in ones."""
    geo_database: Path | None = None
    asn_database: Path | None = None
    search_engine_crawler_bypass: bool = False
    listen: Address
    control: Address
    decide: Address | None = None
    socket_mode: str = "0660"
    data: Path
    store: str = ""
    """URL; empty: in the data directory."""
    analytics: str = ""
    """Empty: in the data directory; `off`; or a ClickHouse's URL."""
    analytics_retention: AnalyticsRetention = field(default_factory=AnalyticsRetention)
    shared: Shared | None = None
    """None: this process keeps its own ledgers."""
    origin: Origin | None = None
    """For hosts without an origin of their own; None: they are not served."""
    zones: Mapping[str, Zone] = field(default_factory=dict)
    """The zone of each room made through the API, by the room's id."""
    zone_names: tuple[str, ...] = ()
    """Every zone made through the API."""
    zone_origins: Mapping[str, Origin] = field(default_factory=dict)
    """By the zone's name, for itself and every host below."""
    zone_proxies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Trusted proxies, likewise."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    always_use_https: bool = False
    trusted_proxies: tuple[str, ...] = ()
    trust_forwarded_host: bool = False
    other_hosts: str = "refuse"
    trusted_headers: tuple[str, ...] = TRUSTED_HEADERS
    default_host: str = ""
    ambiguous_paths: str = "auto"
    merge_slashes: bool | str = "auto"
    pass_well_known: bool = True
    answer_live_checks: bool = True
    zone_paths: Mapping[str, PathPolicy] = field(default_factory=dict)
    """By the zone's name, where it differs from the process."""
    drain_seconds: int = 30
    tls: Tls | None = None
    control_tls: Tls | None = None
    limits: Limits = field(default_factory=Limits)
    log: Log = field(default_factory=Log)
    health: Health = field(default_factory=Health)
    pass_keys: PassKeys | None = None
    oidc: OidcSettings | None = None
    sending: Sending = field(default_factory=Sending)
    alerting: Alerting = field(default_factory=Alerting)
    status_listen: Address | None = None
    """None: no status pages."""
    status_pages: tuple[PageSettings, ...] = ()
    faults: tuple[UnitFault, ...] = ()
    """What of the store is left out, or held instead of served."""
    path: Path | None = None
    files: tuple[Path, ...] = ()
    """Every file that was read, the configuration file first; the reloader watches them."""
    notes: tuple[str, ...] = ()
    """What is allowed but an operator may want to know."""
