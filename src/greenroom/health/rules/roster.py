"""Who probes: agents by region, lost agents, and the three of a region that probe a check."""

import hashlib
from collections.abc import Mapping

import msgspec

from greenroom.model.health_check import REGIONS, HealthCheck

AGENTS_PER_REGION = 3

MISSED_REPORTS = 3

FORGOTTEN_MS = 24 * 3_600_000
"""Until then a silent agent still counts, so that losing it cannot shift a majority."""

LOCAL = "local"

GLOBAL = "Global"
"""In place of a region: greenroom's own agent, or all regions together."""


class Agent(msgspec.Struct, frozen=True):
    name: str
    region: str
    heard_ms: int
    report_every_ms: int

    def lost(self, now_ms: int) -> bool:
        return now_ms - self.heard_ms > MISSED_REPORTS * self.report_every_ms


Roster = Mapping[str, Agent]


def lost_agents(roster: Roster, now_ms: int) -> frozenset[str]:
    return frozenset(name for name, agent in roster.items() if agent.lost(now_ms))


def remembered(roster: Roster, now_ms: int) -> dict[str, Agent]:
    return {
        name: agent for name, agent in roster.items() if now_ms - agent.heard_ms <= FORGOTTEN_MS
    }


class AgentsByRegion:
    def __init__(self, roster: Roster, now_ms: int) -> None:
        self._now_ms = now_ms
        self._own = roster.get(LOCAL)
        self._agents: dict[str, list[Agent]] = {}
        for agent in roster.values():
            self._agents.setdefault(agent.region, []).append(agent)
        self._few = all(len(agents) <= AGENTS_PER_REGION for agents in self._agents.values())
        self._known: dict[tuple[str, ...] | None, Mapping[str, tuple[str, ...]]] = {}

    def asked(self, check: HealthCheck) -> Mapping[str, tuple[str, ...]]:
        """Chosen regions without agents are left out. Without chosen regions greenroom's own agent
        probes, else the first region with agents. If no chosen region has agents, greenroom's own
        agent stands for all.
        """
        if not self._few:
            return self._chosen(check)
        found = self._known.get(check.check_regions)
        if found is None:
            found = self._known[check.check_regions] = self._chosen(check)
        return found

    def _chosen(self, check: HealthCheck) -> Mapping[str, tuple[str, ...]]:
        regions, own = check.regions, self._own
        chosen = [region for region in regions if region in self._agents]
        if not chosen and own:
            return {own.region: (own.name,)}
        if not chosen and not regions:
            chosen = [region for region in REGIONS if region in self._agents][:1]
        return {region: _three(check.id, self._agents[region], self._now_ms) for region in chosen}


def asked(check: HealthCheck, roster: Roster, now_ms: int) -> Mapping[str, tuple[str, ...]]:
    return AgentsByRegion(roster, now_ms).asked(check)


def _three(check_id: str, agents: list[Agent], now_ms: int) -> tuple[str, ...]:
    """Living agents first; the order depends on the check, to share the work."""
    if len(agents) <= AGENTS_PER_REGION:
        return tuple(sorted(agent.name for agent in agents))
    ordered = sorted(agents, key=lambda agent: (agent.lost(now_ms), _rank(check_id, agent.name)))
    return tuple(sorted(agent.name for agent in ordered[:AGENTS_PER_REGION]))


def _rank(check_id: str, agent: str) -> bytes:
    return hashlib.blake2b(f"{check_id}/{agent}".encode(), digest_size=8).digest()
