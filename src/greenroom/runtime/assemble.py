"""Wiring only: nothing in here decides anything."""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_network
from typing import NamedTuple

import structlog

from greenroom.admission.schedule import Effective
from greenroom.capacity.room_capacity import CapacityState
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.state import DocumentState, DrawState, RoomState, TracedAnswer
from greenroom.decision.data_centers import DataCenters
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.lost_tickets import LostTickets, probable_cause
from greenroom.decision.observer import Observer, observed_by
from greenroom.decision.room_schedule import RoomSchedule
from greenroom.decision.room_table import RoomTable
from greenroom.decision.room_view import Figures
from greenroom.decision.service import DecisionService
from greenroom.decision.tickets import Sealer
from greenroom.gateway.documents import RoomDocuments
from greenroom.gateway.origin.address import Origin, OriginGuard
from greenroom.gateway.request_record import RequestObserver
from greenroom.gateway.server import Gateway
from greenroom.gateway.wire.own_answers import LIVE_TARGET
from greenroom.keys.ticket_keys import KeyRing
from greenroom.lookups import Crawlers, LocalLookups, Places
from greenroom.lookups.confirmed_names import ConfirmedNames
from greenroom.lookups.places import open_database
from greenroom.model.clock import Clock
from greenroom.model.room import Room
from greenroom.model.visit import Arrival
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.request.path_readings import PathPolicies, PathPolicy
from greenroom.rules import Lookups
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.loops import OnError

log = structlog.get_logger(__name__)


def schedule_state(schedule: RoomSchedule | None) -> tuple[Effective | None, tuple[DrawState, ...]]:
    if schedule is None:
        return None, ()
    draws = []
    for draw in schedule.draws:
        when, held = draw.scheduled, draw.drawn is not None
        draws.append(
            DrawState(
                draw.draw_id,
                when.event_id,
                draw.event,
                draw.commitment,
                when.prequeue_start_ms,
                when.event_start_ms,
                held,
            )
        )
    return schedule.now.effective, tuple(draws)


class ServedRoom(NamedTuple):
    """What serving visitors adds to a room's state."""

    schedule: RoomSchedule | None = None
    documents: RoomDocuments | None = None
    capacity: CapacityState | None = None
    instances: int = 0


def room_state(
    room: Room, figures: Figures, requests: Mapping[str, int], origin: str, served: ServedRoom
) -> RoomState:
    now, draws = schedule_state(served.schedule)
    seen = _documents(served.documents) if served.documents else None
    return RoomState(
        room, figures, requests, now, draws, origin, seen, served.capacity, served.instances
    )


def _documents(found: RoomDocuments) -> DocumentState:
    traced = {
        bucket: TracedAnswer(span.trace_id.hex(), span.span_id.hex(), seconds, at_s)
        for bucket, (span, seconds, at_s) in found.traced.items()
    }
    return DocumentState(found.histogram, found.failed, traced)


def lookups(config: ProcessConfig, names: ConfirmedNames) -> Lookups:
    """Raises ValueError when a list that passed its check can no longer be used."""
    geo, systems = (
        open_database(path) if path else None for path in (config.geo_database, config.asn_database)
    )
    return LocalLookups(Places(geo, systems), Crawlers(config.crawlers, names.name_of))


def noticing_lost_tickets(observer: Observer, counts: DecisionCounts) -> Observer:
    def told(room: Room, arrival: Arrival, loud: bool) -> None:
        counts.ticket_lost(room.id)
        if loud:
            log.warning(
                "tickets_do_not_come_back",
                room=room.name,
                host=arrival.host,
                scheme=arrival.scheme,
                cause=probable_cause(room, arrival),
            )

    return LostTickets(told).behind(observer)


def decision_service(
    table: RoomTable,
    ring: KeyRing,
    clock: Clock,
    on_error: OnError,
    observers: Iterable[Observer],
) -> DecisionService:
    take = Entropy().take
    return DecisionService(
        table, Sealer(ring, take), clock, take, on_error, observed_by(observers, on_error)
    )


def data_centers(config: ProcessConfig) -> DataCenters | None:
    return (
        DataCenters.of(config.shared.data_center, config.shared.data_centers)
        if config.shared
        else None
    )


def gateway(
    config: ProcessConfig,
    decision: DecisionService,
    on_error: OnError,
    on_request: RequestObserver | None,
    guard: OriginGuard,
) -> Gateway:
    """Make it inside the event loop."""
    return Gateway(
        decision,
        origins(config),
        limits=config.limits,
        forwarded_policy=forwarded_policy(config),
        on_error=on_error,
        on_request=on_request,
        guard=guard,
        live_target=live_target(config),
    )


def rewire(config: ProcessConfig, running: Gateway, on_request: RequestObserver | None) -> None:
    """Open connections meet the new configuration with their next request."""
    state = running.state
    state.on_request = on_request
    state.origins = origins(config)
    state.relimit(config.limits)
    state.forwarded_policy = forwarded_policy(config)
    state.live_target = live_target(config)


def live_target(config: ProcessConfig) -> bytes:
    return LIVE_TARGET if config.answer_live_checks else b""


def origins(config: ProcessConfig) -> Callable[[str], Origin | None]:
    """Its own, else of the smallest zone around the host, else of the process."""
    exact, other = config.origins, config.origin
    zones = {
        zone.name: Origin.of(zone.origin, of_zone=True)
        for zone in config.stored_zones
        if zone.origin
    }
    if not zones:
        return lambda host: exact.get(host, other)

    def find(host: str) -> Origin | None:
        found = exact.get(host)
        while found is None:
            found = zones.get(host)
            dot = host.find(".")
            if found is None and dot < 0:
                return other
            host = host[dot + 1 :]
        return found

    return find


def forwarded_policy(config: ProcessConfig) -> ForwardedPolicy:
    return _policy(config, config.trust_forwarded_host)


def asking_policy(config: ProcessConfig) -> ForwardedPolicy:
    """Proxies that ask send the host in their own way, so no X-Forwarded-Host of a visitor may
    replace it.
    """
    return _policy(config, False)


def process_policy(config: ProcessConfig) -> ForwardedPolicy:
    """Never those of a zone, whose editor is a caller too."""
    return ForwardedPolicy(map(ip_network, config.trusted_proxies))


def _only_host(config: ProcessConfig) -> str:
    hosts = {route.host for room in config.rooms for route in room.routes}
    return hosts.pop() if len(hosts) == 1 and not any("*" in host for host in hosts) else ""


def _policy(config: ProcessConfig, trust_host: bool) -> ForwardedPolicy:
    zones = {
        zone.name: map(ip_network, zone.trusted_proxies)
        for zone in config.stored_zones
        if zone.trusted_proxies
    }
    paths = {
        zone.name: PathPolicy(zone.ambiguous_paths, zone.merge_slashes)
        for zone in config.stored_zones
    }
    usual = PathPolicy(config.ambiguous_paths, config.merge_slashes)
    return ForwardedPolicy(
        map(ip_network, config.trusted_proxies),
        trust_host=trust_host,
        trust_socket=True,
        zones=zones,
        kept=config.trusted_headers,
        default_host=config.default_host or _only_host(config),
        paths=PathPolicies(usual, paths),
    )
