"""A local account, an API token, a person of an OpenID Connect provider, or the holder of the
one-time link.
"""

from collections.abc import Iterable
from typing import NamedTuple

from greenroom.model.account import Role
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.model.session import SessionRow
from greenroom.model.zone import Zone


class Person(NamedTuple):
    """`zone_ids`: empty for all; `author` is for the audit log."""

    name: str
    role: Role
    zone_ids: tuple[str, ...]
    author: str
    owner: str

    def sees(self, zone_id: str) -> bool:
        return not self.zone_ids or zone_id in self.zone_ids

    def may(self, role: Role) -> bool:
        return self.role >= role

    def zones(self, known: Configuration) -> list[Entry[Zone]]:
        return sorted(
            (entry for entry in known.zones.values() if self.sees(entry.id)),
            key=lambda entry: entry.record.name,
        )

    def own_zones(self, known: Configuration) -> list[Entry[Zone]]:
        """Without the zones of a configuration file."""
        return [zone for zone in self.zones(known) if not zone.read_only]

    def rooms(self, known: Configuration) -> Iterable[Entry[Room]]:
        return (entry for entry in known.rooms.values() if self.sees(entry.parent))


class DashboardSession(NamedTuple):
    row: SessionRow
    person: Person
    csrf: str
