"""Puts the parts together for one configuration. Wiring only: nothing in here decides anything."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_network

from greenroom.core.rules import Lookups, Membership, compile_bypass, compile_lists
from greenroom.core.schedule import effective
from greenroom.gateway.calendar import Bypass, compile_room
from greenroom.gateway.exchange import Receiver
from greenroom.gateway.forwarded import ForwardedPolicy
from greenroom.gateway.origin import Origin
from greenroom.gateway.reception import Reception
from greenroom.gateway.room_table import RoomTable
from greenroom.gateway.server import Gateway
from greenroom.gateway.tickets import Sealer
from greenroom.model.room import Room
from greenroom.model.rule import Rule
from greenroom.ports import Clock, Draws
from greenroom.runtime.access import AccessLog
from greenroom.runtime.books import OpenBooks
from greenroom.runtime.settings import Config
from greenroom.stores.keys import KeyRing

OnError = Callable[[BaseException], None]


def ledger_rooms(config: Config) -> Callable[[int], list[Room]]:
    """What the ledgers are told at a moment: every room as its events make it."""
    return lambda now_ms: [effective(room, config.events.get(room.id, ()), now_ms).ledger_room for room in config.rooms]


def room_table(config: Config, books: Mapping[str, OpenBooks], draws: Draws, now_ms: int, lookups: Lookups, on_error: OnError) -> RoomTable:
    """Every room of the configuration with its books; the one reference that a reload swaps.

    Raises InvalidConfig, or StorageFailed when the seed of a draw cannot be had.
    """
    lists = compile_lists(config.lists)
    return RoomTable(
        compile_room(
            room,
            config.events.get(room.id, ()),
            now_ms,
            books[room.id].ledger,
            counts := books[room.id].counts,
            always_use_https=config.always_use_https,
            draws=draws,
            on_error=on_error,
            bypass=bypass(config.rules.get(room.id, ()), lists, lookups, counts, on_error),
        )
        for room in config.rooms
    )


def bypass(
    rules: Sequence[Rule], lists: Mapping[str, Membership], lookups: Lookups, counts: Counter[str], on_error: OnError
) -> Bypass | None:
    """What lets by in one room; None when no rule counts. A rule that fails is counted and told, and lets nobody by."""

    def failed(_: Rule, error: Exception) -> None:
        counts["rule_failed"] += 1
        on_error(error)

    question = compile_bypass(rules, lists, failed)
    return (lambda arrival, now_ms: question(arrival, now_ms, lookups)) if any(rule.enabled for rule in rules) else None


def reception(table: RoomTable, ring: KeyRing, clock: Clock, on_error: OnError) -> Reception:
    """Who decides about arrivals."""
    return Reception(table, Sealer(ring), clock, os.urandom, on_error)


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
    running.receiver = receiver(config, front)
    running.receive = running.receiver.receive
    running.origins = origins(config)
    running.relimit(config.limits)
    running.forwarded_policy = forwarded_policy(config)


def origins(config: Config) -> Callable[[str], Origin]:
    """The origin of a host."""
    find, other = config.origins.get, config.origin
    return lambda host: find(host, other)


def forwarded_policy(config: Config) -> ForwardedPolicy:
    """Whom to believe about the visitor."""
    return ForwardedPolicy(map(ip_network, config.trusted_proxies), trust_host=config.trust_forwarded_host)
