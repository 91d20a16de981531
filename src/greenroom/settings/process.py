"""What the configuration file may say about a process: every key outside of rooms and other
documents, with its bounds.
"""

from dataclasses import dataclass
from typing import NamedTuple

from greenroom.model.fields import same_as, spec
from greenroom.model.health_check import REGIONS
from greenroom.model.zone import Zone
from greenroom.settings.limits import Limits

TRUSTED_HEADERS = (
    "X-Forwarded-Prefix",
    "X-Forwarded-Port",
    "X-Forwarded-Ssl",
    "X-Script-Name",
    "CF-Connecting-IP",
    "True-Client-IP",
)
"""What proxies tell applications about the visitor's way, besides what is rewritten for the origin.
Applications strip the path of X-Script-Name and X-Forwarded-Prefix from the request's: from a
visitor it would ask for another page than the one matched.
"""

NAME_PATTERN, NAME_MAX = r"[A-Za-z0-9_.-]+", 63

NAME = f"letters, digits, `.`, `_` and `-`, at most {NAME_MAX} of them"

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
        "listen address of `[[status_pages]]`, or a Unix socket; empty: none",
        "",
        example="0.0.0.0:8082",
        high=300,
    )
    decide: str = spec(
        "address and port where `trusted_proxies` ask for decisions, or a Unix socket, where every"
        " program that can open it may ask; empty: none",
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
        " `~/.local/state/greenroom`",
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
        "Redis server of shared ledgers: `redis://`, `rediss://`, `unix://`, `redis+sentinel://`"
        " or `redis+cluster://`; empty: the process keeps its own",
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
        "a data center that has no contact with the coordinator for so long stops admitting"
        " visitors and renewing sessions, and the others get its capacity when its last session"
        " must have ended; 0: never",
        600,
        unit="seconds",
        low=0,
        high=86_400,
    )
    global_redis: str = spec(
        "Redis server shared by all data centers; empty: that of this data center",
        "",
        high=2048,
    )
    always_use_https: bool = same_as(Zone, "always_use_https")
    trusted_proxies: tuple[str, ...] = spec(
        "addresses and networks whose X-Forwarded-* and Forwarded headers are trusted",
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
        "search-engine crawlers, verified by address, bypass every room",
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
        "headers that the origin gets from trusted proxies only",
        TRUSTED_HEADERS,
        high=100,
    )
    default_host: str = spec(
        "host of HTTP/1.0 requests that name none; empty: the only host of all rooms, else the"
        " address of the listener",
        "",
        high=255,
    )
    ambiguous_paths: str = same_as(Zone, "ambiguous_paths")
    merge_slashes: bool | str = same_as(Zone, "merge_slashes")
    pass_well_known: bool = same_as(Zone, "pass_well_known")
    answer_live_checks: bool = spec(
        "answer /.well-known/greenroom/live on the listener for visitors with 200, whatever the"
        " rooms do: for health checks of a proxy in front",
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
class Tracing:
    endpoint: str = spec(
        "base URL of a collector (OTLP over HTTP), such as http://127.0.0.1:4318; empty: no traces",
        "",
        high=2048,
    )
    one_in: int = spec(
        "one request in this many is traced, and each that a trusted proxy traces",
        100,
        low=1,
        high=1_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsExport:
    endpoint: str = spec(
        "base URL of a collector that gets /metrics over OTLP/HTTP; empty: none. Needs the wheel"
        " with `[otel]`",
        "",
        high=2048,
    )
    every_seconds: int = spec("how often they are sent", 60, low=1, high=3600)


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


SECURITY = ("starttls", "tls", "none")
WEBHOOK_TESTS = ("required", "reported", "off")


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """`[notifications]` of the configuration file."""

    smtp_host: str = spec(
        "mail server for e-mail; empty: no e-mail can be sent",
        "",
        example="smtp.example.com",
        high=253,
    )
    smtp_port: int = spec("its port", 587, low=1, high=65_535)
    smtp_security: str = spec(
        "`starttls`, `tls` (from the first byte, usually port 465) or `none`",
        "starttls",
        choices=SECURITY,
    )
    smtp_user: str = spec("user name; empty: no login", "", high=320)
    smtp_password_file: str = spec(
        "file with the password on its first line; relative to the configuration file",
        "",
        high=4_096,
    )
    smtp_from: str = spec(
        "sender of every e-mail",
        "greenroom@localhost",
        example="greenroom@example.com",
        low=3,
        high=320,
    )
    dashboard_url: str = spec(
        "address at which people open the dashboard; alerts then link to the check or room they are"
        " about",
        "",
        example="https://rooms.example.com",
        high=2_048,
    )
    webhook_test: str = spec(
        "whether a webhook must take a test message when it is saved: `required`, `reported` (a"
        " failure is told in the answer) or `off`",
        "required",
        choices=WEBHOOK_TESTS,
    )


@dataclass(frozen=True, slots=True)
class Outbound:
    """`[outbound]` of the configuration file: where greenroom's own requests may go."""

    schemes: tuple[str, ...] = spec("schemes of URLs", ("https", "http"), low=1, high=2)
    ports: tuple[int, ...] = spec("ports; empty: all", (443, 80), high=100)
    allow: tuple[str, ...] = spec(
        "addresses and networks that are allowed although they are not public, such as 10.0.0.0/8",
        (),
        example=["10.0.0.0/8"],
        high=200,
    )
    deny: tuple[str, ...] = spec(
        "addresses and networks that are refused although they are public", (), high=200
    )


PROMETHEUS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusLogin:
    """`[[prometheus]]` of the configuration file. Paths are relative to the file's directory."""

    url: str = spec(
        "URL that `capacity_metrics` of rooms begins with, up to `?query=`; the secret is sent"
        " nowhere else",
        example="https://prometheus.example.com/api/v1/query",
        low=1,
        high=2_048,
    )
    token_file: str = spec("file with a bearer token on its first line", "", high=4_096)
    user: str = spec("user name, instead of a token", "", high=320)
    password_file: str = spec("file with its password on the first line", "", high=4_096)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePass:
    """Keys for rooms with `native_pass`. Paths are relative to the file's directory."""

    secret_file: str = spec(
        "file with the secret that greenroom and the proxy share, for hs256 and secure_link: 32"
        " characters or more",
        "",
        high=4096,
    )
    key_file: str = spec(
        "PEM file with the private key for es256, on P-256; the proxy has the public key",
        "",
        high=4096,
    )


SECTIONS: dict[str, type] = {
    "tls": Tls,
    "control_tls": Tls,
    "limits": Limits,
    "log": Log,
    "tracing": Tracing,
    "metrics": MetricsExport,
    "health": Health,
    "notifications": NotificationSettings,
    "outbound": Outbound,
    "analytics_retention": AnalyticsRetention,
    "native_pass": NativePass,
}
"""Tables that are one record each."""
