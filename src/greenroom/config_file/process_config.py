"""The checked settings of a process, and the documents that it serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from greenroom.alerts.mail import Sending
from greenroom.config_file.shared import SharedLedgers
from greenroom.configuration.layers import UnitFault
from greenroom.decision.native_pass import PassKeys
from greenroom.gateway.origin.address import Origin
from greenroom.model.configuration import Configuration
from greenroom.model.crawler import Crawler
from greenroom.model.oidc import OidcSettings
from greenroom.model.room import Room
from greenroom.model.rule import RuleList
from greenroom.model.status_page import StatusPage
from greenroom.model.zone import Zone
from greenroom.settings.limits import Limits
from greenroom.settings.process import (
    TRUSTED_HEADERS,
    Address,
    AnalyticsRetention,
    Health,
    Log,
    MetricsExport,
    Tls,
    Tracing,
)

ORIGINS_MAX = 1_000
"""Keeps a broken generated file from exhausting the memory."""


@dataclass(frozen=True, kw_only=True)
class ProcessConfig:
    documents: Configuration = field(default_factory=Configuration)
    """The file's, in the zone FILE_ZONE_ID; after `served`, those of file and store."""
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
    shared: SharedLedgers | None = None
    """None: this process keeps its own ledgers."""
    origin: Origin | None = None
    """For hosts without an origin of their own; None: they are not served."""
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
    drain_seconds: int = 30
    tls: Tls | None = None
    control_tls: Tls | None = None
    limits: Limits = field(default_factory=Limits)
    log: Log = field(default_factory=Log)
    tracing: Tracing = field(default_factory=Tracing)
    metrics: MetricsExport = field(default_factory=MetricsExport)
    health: Health = field(default_factory=Health)
    pass_keys: PassKeys | None = None
    prometheus_logins: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of `Authorization`, by URL."""
    oidc: OidcSettings | None = None
    sending: Sending = field(default_factory=Sending)
    status_listen: Address | None = None
    faults: tuple[UnitFault, ...] = ()
    """What of the store is left out or held."""
    path: Path | None = None
    files: tuple[Path, ...] = ()
    """Files read, the configuration file first; the reloader watches them."""
    notes: tuple[str, ...] = ()
    """What is allowed but an operator may want to know."""

    @cached_property
    def rooms(self) -> tuple[Room, ...]:
        """The file's first."""
        return tuple(self.documents.rooms.records())

    @cached_property
    def lists(self) -> tuple[RuleList, ...]:
        """With their items."""
        return tuple(map(self.documents.rule_list, self.documents.lists.values()))

    @cached_property
    def stored_zones(self) -> tuple[Zone, ...]:
        """Made through the API; one whose origin cannot be used has NO_ORIGIN."""
        zones = self.documents.zones.values()
        return tuple(entry.record for entry in zones if not entry.read_only)

    @property
    def sees_answers(self) -> bool:
        """Not a process that only decides for proxies."""
        return bool(
            self.decide is None
            or self.origin
            or self.origins
            or any(zone.origin for zone in self.stored_zones)
        )

    @property
    def status_pages(self) -> tuple[StatusPage, ...]:
        return tuple(self.documents.status_pages.records())

    def zone_of(self, room: Room) -> Zone | None:
        """None: a room of the file."""
        entry = self.documents.rooms.get(room.id)
        return self.documents.zones[entry.parent].record if entry and not entry.read_only else None

    def settings_of(self, room: Room) -> "Zone | ProcessConfig":
        """Those that rooms of a zone share; for rooms of the file, those of the process."""
        return self.zone_of(room) or self

    def listeners(self, **taken: Address | None) -> dict[str, Address]:
        """By key; `taken` are real addresses, where another was written."""
        written = {
            "listen": self.listen,
            "control": self.control,
            "decide": self.decide,
            "status_listen": self.status_listen,
        }
        return {key: address for key, address in (written | taken).items() if address is not None}
