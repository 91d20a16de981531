"""A world of probe agents in virtual time: an origin that is up or down for each region, and agents
that are lost, late, lying or flapping.

The world runs the real rules (core.health) or a deliberately broken variant of one of them, and
keeps what really was the case.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenroom.health.rules import condition, roster, votes
from greenroom.health.rules.condition import Condition, Turn
from greenroom.health.rules.roster import Agent
from greenroom.health.rules.schedule import next_due_ms
from greenroom.health.rules.votes import (
    NO_VOTE,
    UNKNOWN,
    HealthVerdict,
    Vote,
)
from greenroom.model.health_check import HealthCheck, effective

REPORT_MS = 5_000
START_MS = 1_700_000_000_000


def check(**fields: Any) -> HealthCheck:
    return HealthCheck(
        **effective(
            {
                "id": "0123456789abcdef" * 2,
                "name": "origin",
                "address": "origin.example.com",
                **fields,
            }
        )
    )


@dataclass(frozen=True)
class Rules:
    """The rules under test; each may be replaced by a broken one."""

    counted: Callable[[Vote, Vote, HealthCheck], Vote] = votes.counted
    judged: Callable[..., HealthVerdict] = votes.judged
    advanced: Callable[..., tuple[Condition, Turn | None]] = condition.advanced


@dataclass(frozen=True)
class Behaviour:
    """How one agent behaves. `lost_after_ms`: is never heard of again from then on; `late_ms`: its
    reports take so long; `lies`: says the opposite of what it sees; `flaps`: says one and the other
    in turn; `doubled`: every report comes twice, the old ones again behind the new ones."""

    lost_after_ms: int | None = None
    late_ms: int = 0
    lies: bool = False
    flaps: bool = False
    doubled: bool = False


@dataclass
class World:
    """`down(region, at_ms)` says whether the origin is down as seen from there."""

    check: HealthCheck
    agents: Mapping[str, tuple[str, Behaviour]]
    down: Callable[[str, int], bool]
    rules: Rules = field(default_factory=Rules)
    turns: list[tuple[int, Turn]] = field(default_factory=list)
    statuses: list[tuple[int, str]] = field(default_factory=list)
    state: Condition = field(default_factory=Condition)
    votes: dict[str, Vote] = field(default_factory=dict)

    def run(self, for_ms: int, begin_ms: int = START_MS) -> "World":
        """Every report at its time, and a look at the state once a second."""
        known = {
            name: Agent(name, region, begin_ms, REPORT_MS)
            for name, (region, _) in self.agents.items()
        }
        for now_ms, name, result in sorted(
            self._reports(begin_ms, for_ms), key=lambda report: report[0]
        ):
            if name:
                known[name] = Agent(name, known[name].region, now_ms, REPORT_MS)
            if result:
                self.votes[name] = self.rules.counted(
                    self.votes.get(name, NO_VOTE), result, self.check
                )
            self._look(known, now_ms)
        return self

    def _look(self, known: Mapping[str, Agent], now_ms: int) -> None:
        asked = roster.asked(self.check, known, now_ms)
        verdict = self.rules.judged(
            self.check, asked, self.votes, roster.lost_agents(known, now_ms), now_ms
        )
        self.state, turn = self.rules.advanced(self.state, self.check, verdict, now_ms)
        if turn:
            self.turns.append((now_ms, turn))
        if not self.statuses or self.statuses[-1][1] != self.state.status:
            self.statuses.append((now_ms, self.state.status))

    def _reports(self, begin_ms: int, for_ms: int) -> Sequence[tuple[int, str, Vote | None]]:
        found: list[tuple[int, str, Vote | None]] = [
            (at, "", None) for at in range(begin_ms, begin_ms + for_ms, 1_000)
        ]
        for name, (region, behaviour) in self.agents.items():
            end_ms = begin_ms + min(
                for_ms, for_ms if behaviour.lost_after_ms is None else behaviour.lost_after_ms
            )
            found += [(at, name, None) for at in range(begin_ms, end_ms, REPORT_MS)]
            at, number = begin_ms, 0
            while (at := next_due_ms(self.check.id, name, self.check.interval * 1000, at)) < end_ms:
                ok = not self.down(region, at) ^ behaviour.lies
                ok = bool(number % 2) if behaviour.flaps else ok
                number += 1
                sent = Vote(ok=ok, at_ms=at, reason="" if ok else "TCP connection failed")
                found.append((at + behaviour.late_ms, name, sent))
                if behaviour.doubled:
                    found.append((at + behaviour.late_ms + self.check.interval * 1_500, name, sent))
        return found

    def alarms(self) -> list[int]:
        """When it was said that the origin is unhealthy."""
        return [at for at, turn in self.turns if turn.new == votes.UNHEALTHY]


def of_those_who_answered(
    check: HealthCheck,
    asked: Mapping[str, Sequence[str]],
    given: Any,
    lost: Collection[str],
    now_ms: int,
) -> HealthVerdict:
    """Broken: the majority of those who answered, instead of those who were asked."""
    there = {
        region: [
            agent
            for agent in agents
            if agent not in lost and agent in given and given[agent].says != UNKNOWN
        ]
        for region, agents in asked.items()
    }
    return votes.judged(
        check, {region: agents for region, agents in there.items() if agents}, given, lost, now_ms
    )


def one_is_enough(
    check: HealthCheck,
    asked: Mapping[str, Sequence[str]],
    given: Any,
    lost: Collection[str],
    now_ms: int,
) -> HealthVerdict:
    """Broken: a single vote condemns."""
    said = [
        given[agent].says
        for agents in asked.values()
        for agent in agents
        if agent in given and agent not in lost
    ]
    return HealthVerdict(
        votes.UNHEALTHY if votes.UNHEALTHY in said else votes.HEALTHY if said else UNKNOWN, {}
    )


def silence_is_failure(
    check: HealthCheck,
    asked: Mapping[str, Sequence[str]],
    given: Any,
    lost: Collection[str],
    now_ms: int,
) -> HealthVerdict:
    """Broken: an agent that is lost says unhealthy."""
    voted = {
        name: (Vote(says=votes.UNHEALTHY, at_ms=now_ms) if name in lost else vote)
        for name, vote in given.items()
    }
    return votes.judged(check, asked, voted, (), now_ms)


def votes_never_age(
    check: HealthCheck,
    asked: Mapping[str, Sequence[str]],
    given: Any,
    lost: Collection[str],
    now_ms: int,
) -> HealthVerdict:
    """Broken: what an agent said last counts for ever."""
    return votes.judged(
        check,
        asked,
        {name: Vote(says=vote.says, at_ms=now_ms) for name, vote in given.items()},
        (),
        now_ms,
    )


def order_of_arrival(vote: Vote, result: Vote, check: HealthCheck) -> Vote:
    """Broken: an old report that comes again counts as a new one."""
    return votes.counted(Vote(vote.says, vote.ok, vote.run, result.at_ms - 1), result, check)


def first_result_counts(vote: Vote, result: Vote, check: HealthCheck) -> Vote:
    """Broken: `consecutive_fails` is not looked at."""
    return votes.counted(vote, result, HealthCheck(id=check.id, name="x", address="x"))


def verdict_without_memory(
    state: Condition, check: HealthCheck, verdict: HealthVerdict, now_ms: int
) -> tuple[Condition, Turn | None]:
    """Broken: being undecided for a moment is forgotten status, so the same status is announced
    again.
    """
    return condition.advanced(
        Condition() if verdict.status == UNKNOWN else state, check, verdict, now_ms
    )
