"""A checked configuration: the settings of a process, and what it serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from greenroom.alerts.mail import Sending
from greenroom.config.alert_entries import Alerting
from greenroom.config.shared import Shared
from greenroom.decision.native_pass import PassKeys
from greenroom.errors import Problem
from greenroom.gateway.origin.address import Origin
from greenroom.model.crawler import Crawler
from greenroom.model.event import Event
from greenroom.model.health_check import HealthCheck
from greenroom.model.offer import Offer
from greenroom.model.oidc import OidcSettings
from greenroom.model.room import Room
from greenroom.model.rule import Rule, RuleList
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
    offers: Mapping[str, tuple[Offer, ...]] = field(default_factory=dict)
    """By room id; only of the store."""
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
    stored_zones: tuple[Zone, ...] = ()
    """Every zone made through the API; one whose origin cannot be used has NO_ORIGIN."""
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
    oidc: OidcSettings | None = None
    sending: Sending = field(default_factory=Sending)
    alerting: Alerting = field(default_factory=Alerting)
    status_listen: Address | None = None
    """None: no status pages."""
    status_pages: tuple[StatusPage, ...] = ()
    faults: tuple[UnitFault, ...] = ()
    """What of the store is left out, or held instead of served."""
    path: Path | None = None
    files: tuple[Path, ...] = ()
    """Every file that was read, the configuration file first; the reloader watches them."""
    notes: tuple[str, ...] = ()
    """What is allowed but an operator may want to know."""
