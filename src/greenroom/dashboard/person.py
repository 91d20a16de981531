"""Who is signed in: a local account, an API token, a person of an OpenID Connect provider, or the
holder of the one-time link.
"""

from collections.abc import Iterable
from typing import NamedTuple

from greenroom.model.account import Role
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.model.zone import Zone


class Person(NamedTuple):
    """A signed-in person. `zone_ids`: the zones they may see, empty for all; `author` is what the
    audit log says.
    """

    name: str
    role: Role
    zone_ids: tuple[str, ...]
    author: str
    owner: str
    """As in SessionRow, for revoking."""

    def sees(self, zone_id: str) -> bool:
        """Whether this person may see the zone."""
        return not self.zone_ids or zone_id in self.zone_ids

    def may(self, role: Role) -> bool:
        """Whether their role is at least this one."""
        return self.role >= role

    def zones(self, known: Configuration) -> list[Entry[Zone]]:
        """Their zones, by name."""
        return sorted(
            (entry for entry in known.zones.values() if self.sees(entry.id)),
            key=lambda entry: entry.record.name,
        )

    def rooms(self, known: Configuration) -> Iterable[Entry[Room]]:
        """The rooms of their zones, oldest first."""
        return (entry for entry in known.rooms.values() if self.sees(entry.parent))
