"""Puts the parts together for one configuration. Wiring only: nothing in here decides anything."""

from collections.abc import Callable
from ipaddress import ip_network

from greenroom.control.state import DrawState
from greenroom.core.rules import Lookups
from greenroom.core.schedule import Effective, effective
from greenroom.gateway.calendar import Calendar
from greenroom.gateway.exchange import Receiver
from greenroom.gateway.forwarded import ForwardedPolicy
from greenroom.gateway.homes import Homes
from greenroom.gateway.origin import Origin
from greenroom.gateway.reception import Reception
from greenroom.gateway.room_table import RoomTable
from greenroom.gateway.server import Gateway
from greenroom.gateway.tickets import Sealer
from greenroom.lookups import Crawlers, LocalLookups, Places
from greenroom.lookups.confirmed_names import ConfirmedNames
from greenroom.lookups.places import open_database
from greenroom.model.room import Room
from greenroom.ports import Clock
from greenroom.runtime.access import AccessLog
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.settings import Config
from greenroom.stores.keys import KeyRing

OnError = Callable[[BaseException], None]


def ledger_rooms(config: Config) -> Callable[[int], list[Room]]:
    """What the ledgers are told at a moment: every room as its events make it."""
    return lambda now_ms: [effective(room, config.events.get(room.id, ()), now_ms).ledger_room for room in config.rooms]


def calendar_state(calendar: Calendar | None) -> tuple[Effective | None, tuple[DrawState, ...]]:
    """What an operator can know of a room's events: the settings of this moment, and its draws."""
    if calendar is None:
        return None, ()
    draws = []
    for drawing in calendar.drawings:
        when, held = drawing.appointment, drawing.drawn is not None
        draws.append(
            DrawState(drawing.draw_id, when.event_id, drawing.event, drawing.commitment, when.prequeue_start_ms, when.event_start_ms, held)
        )
    return calendar.now.effective, tuple(draws)


def lookups(config: Config, names: ConfirmedNames) -> Lookups:
    """What rules may ask about an address. Raises ValueError when a file that was good when it was checked is not any more."""
    geo, systems = (open_database(path) if path else None for path in (config.geo_database, config.asn_database))
    return LocalLookups(Places(geo, systems), Crawlers(config.crawlers, names.name_of))


def reception(table: RoomTable, ring: KeyRing, clock: Clock, on_error: OnError) -> Reception:
    """Who decides about arrivals."""
    take = Entropy().take
    return Reception(table, Sealer(ring, take), clock, take, on_error)


def homes(config: Config) -> Homes | None:
    """The data centers that tickets may name, where books are shared."""
    return Homes.of(config.shared.data_center, config.shared.data_centers) if config.shared else None


def receiver(config: Config, front: Reception) -> Receiver:
    """The reception, behind an access log if one is wanted."""
    return AccessLog(front, config.log.queries) if config.log.access else front


def gateway(config: Config, front: Reception, on_error: OnError) -> Gateway:
    """The data path. Make it inside the event loop."""
    return Gateway(
        receiver(config, front),
        origins(config),
        limits=config.limits,
        forwarded_policy=forwarded_policy(config),
        on_error=on_error,
    )


def rewire(config: Config, running: Gateway, front: Reception, table: RoomTable) -> None:
    """Takes a new configuration over; connections that are open go on, and meet it with their next request."""
    front.table = table
    front.homes = homes(config)
    running.receiver = receiver(config, front)
    running.receive = running.receiver.receive
    running.origins = origins(config)
    running.relimit(config.limits)
    running.forwarded_policy = forwarded_policy(config)


def origins(config: Config) -> Callable[[str], Origin | None]:
    """The origin of a host: its own, else that of the smallest zone around it, else that of the process."""
    exact, zones, other = config.origins, config.zone_origins, config.origin
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


def forwarded_policy(config: Config) -> ForwardedPolicy:
    """Whom to believe about the visitor."""
    zones = {name: map(ip_network, proxies) for name, proxies in config.zone_proxies.items()}
    return ForwardedPolicy(map(ip_network, config.trusted_proxies), trust_host=config.trust_forwarded_host, zones=zones)
