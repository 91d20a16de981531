"""Turns reports into verdicts, in one event loop. A report changes votes and, at once, the
condition of its check; a sweep notices lost agents and stale votes.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import msgspec
import structlog

from greenroom.health.alerts import Placed, status_alert
from greenroom.health.outcome import Pending
from greenroom.health.rules.condition import (
    Condition,
    Turn,
    advanced,
    suspended,
)
from greenroom.health.rules.memory import HealthMemory
from greenroom.health.rules.roster import (
    GLOBAL,
    LOCAL,
    Agent,
    AgentsByRegion,
    lost_agents,
    remembered,
)
from greenroom.health.rules.votes import (
    HEALTHY,
    NO_VOTE,
    UNHEALTHY,
    UNKNOWN,
    HealthVerdict,
    Vote,
    counted,
    judged,
)
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import CheckEvent, ProbeResult, Reason, Report

SWEEP_S = 10

AGENTS_MAX = 500

log = structlog.get_logger(__name__)


@contextlib.contextmanager
def _alone(check_id: str) -> Iterator[None]:
    """An error about one check must not stop the others."""
    try:
        yield
    except Exception:
        log.exception("health_check_failed", check=check_id)


class HealthMonitor:
    def __init__(
        self, now_ms: Callable[[], int], pending: Pending, replan: Callable[[], None] = lambda: None
    ) -> None:
        """`replan` is called when the assignment of checks to agents changes."""
        self._now_ms = now_ms
        self._pending = pending
        self._replan = replan
        self._placed: dict[str, Placed] = {}
        self._conditions: dict[str, Condition] = {}
        self._votes: dict[str, dict[str, Vote]] = {}
        self._verdicts: dict[str, HealthVerdict] = {}
        self._overall_ms: dict[str, int] = {}
        self._roster: dict[str, Agent] = {}
        self._lost: frozenset[str] = frozenset()
        self._asked: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._sweeping: list[str] = []
        self.plan_number = 0

    # -- what there is -----------------------------------------------------------------------------

    def load(self, memory: HealthMemory) -> None:
        # Agents count as heard from now: they could not yet report to this process.
        now_ms = self._now_ms()
        self._conditions = dict(memory.conditions)
        self._roster |= {
            agent.name: msgspec.structs.replace(agent, heard_ms=now_ms) for agent in memory.agents
        }
        self._plan_agents()

    def configure(self, placed: Mapping[str, Placed]) -> None:
        """Incidents of removed checks end; changed checks begin without votes."""
        now_ms = self._now_ms()
        for key in self._placed.keys() - placed.keys():
            with _alone(key):
                self._drop(key, now_ms)
        changed = [
            key
            for key, found in placed.items()
            if key not in self._placed or self._placed[key].check != found.check
        ]
        self._placed = dict(placed)
        for key in self._conditions.keys() - placed.keys():
            self._forget(key)
        for key in changed:
            self._votes.pop(key, None)
            self._verdicts.pop(key, None)
        self._plan_agents()
        for key in changed:
            if key in self._conditions:  # a new check has nothing to look at
                with _alone(key):
                    self._look(key, now_ms)

    def hear(self, name: str, region: str, report_every_ms: int) -> bool:
        """Returns False when there are too many agents to add one."""
        known = self._roster.get(name)
        if known is None and len(self._roster) >= AGENTS_MAX:
            return False
        self._roster[name] = Agent(name, region, self._now_ms(), report_every_ms)
        if known is None or known.region != region or name in self._lost:
            self._plan_agents()
            self._pending.agents(self.agents())
        return True

    def leave(self, name: str) -> None:
        if self._roster.pop(name, None):
            self._plan_agents()
            self._pending.agents(self.agents())

    def agents(self) -> list[Agent]:
        return [agent for agent in self._roster.values() if agent.name != LOCAL]

    def lost(self) -> frozenset[str]:
        return self._lost

    def assigned(self, agent: str) -> dict[str, HealthCheck]:
        return {
            key: self._placed[key].check
            for key, regions in self._asked.items()
            if any(agent in names for names in regions.values())
        }

    def placed(self) -> Mapping[str, Placed]:
        return self._placed

    # -- what the API asks -------------------------------------------------------------------------

    def condition(self, check_id: str) -> Condition | None:
        return self._conditions.get(check_id)

    def regions(self, check_id: str) -> Mapping[str, str]:
        verdict = self._verdicts.get(check_id)
        return verdict.regions if verdict else {}

    # -- what happens ------------------------------------------------------------------------------

    def take(self, agent: str, reports: Iterable[Report]) -> None:
        """Ignores removed checks."""
        now_ms = self._now_ms()
        region = self._roster[agent].region if agent in self._roster else ""
        for report in reports:
            placed = self._placed.get(report.check_id)
            if placed is None or placed.check.suspended:
                continue
            votes = self._votes.setdefault(report.check_id, {})
            before = votes.get(agent, NO_VOTE)
            votes[agent] = counted(before, _vote(placed.check, report), placed.check)
            turned = self._look(report.check_id, now_ms) if votes[agent] is not before else None
            self._record(placed, agent, region, report, turned is not None, now_ms)

    def sweep(self) -> None:
        """Called once a second; looks at a share of the checks each time, and at all agents."""
        now_ms = self._now_ms()
        if self._roster.get(LOCAL):
            self._roster[LOCAL] = msgspec.structs.replace(self._roster[LOCAL], heard_ms=now_ms)
        kept = remembered(self._roster, now_ms)
        if len(kept) < len(self._roster) or lost_agents(kept, now_ms) != self._lost:
            self._roster = kept
            self._plan_agents()
            self._sweeping = []
        self._sweeping = self._sweeping or list(self._placed)
        share = max(1, -(-len(self._placed) // SWEEP_S))
        for key in islice(self._sweeping, share):
            with _alone(key):
                self._look(key, now_ms)
        self._sweeping = self._sweeping[share:]

    def _plan_agents(self) -> None:
        now_ms = self._now_ms()
        self.plan_number += 1
        self._lost = lost_agents(self._roster, now_ms)
        by_region = AgentsByRegion(self._roster, now_ms)
        self._asked = {}
        for key, placed in self._placed.items():
            with _alone(key):
                self._asked[key] = by_region.asked(placed.check)
        self._replan()

    def _look(self, key: str, now_ms: int) -> Turn | None:
        placed = self._placed.get(key)
        if placed is None:
            return None
        before = self._conditions.get(key)
        verdict = judged(
            placed.check, self._asked.get(key, {}), self._votes.get(key, {}), self._lost, now_ms
        )
        after, turn = advanced(before or Condition(), placed.check, verdict, now_ms)
        self._verdicts[key] = verdict
        if turn:
            vote = verdict.vote if turn.new == UNHEALTHY else self._newest(key)
            self._pending.alert(status_alert(placed, turn, vote, verdict.failing, now_ms))
            if turn.event != "none":
                log.warning(
                    "health_status_changed",
                    check=placed.check.name,
                    status=turn.new,
                    before=turn.old,
                    reason=after.reason,
                )
        if before is None or _lasting(after) != _lasting(before):
            self._pending.condition(key, after)
        self._conditions[key] = after
        return turn

    def _newest(self, key: str) -> Vote:
        return max(self._votes.get(key, {}).values(), key=lambda vote: vote.at_ms, default=NO_VOTE)

    def _record(
        self, placed: Placed, agent: str, region: str, report: Report, turned: bool, now_ms: int
    ) -> None:
        check = placed.check
        alone = agent == LOCAL and list(self._asked.get(check.id, {})) == [region]
        said = self._conditions[check.id].status if check.id in self._conditions else UNKNOWN
        event = CheckEvent(
            at_ms=report.at_ms,
            check_id=check.id,
            zone_id=placed.zone_id,
            name=check.name,
            fqdn=check.address,
            healthy=report.result.ok,
            region=GLOBAL if alone else region,
            scope="overall" if alone else "agent",
            result=report.result,
            changed=turned and alone,
            expected=_expected(check, report.result),
            agent=agent,
        )
        self._pending.event(event)
        due_ms = self._overall_ms.get(check.id, 0) + check.interval * 900
        if not alone and said in (HEALTHY, UNHEALTHY) and (turned or now_ms >= due_ms):
            self._overall_ms[check.id] = now_ms
            overall = {
                "healthy": said == HEALTHY,
                "region": GLOBAL,
                "scope": "overall",
                "changed": turned,
                "at_ms": now_ms,
                "agent": "",
                "result": self._verdict_result(check.id, report.result, said == HEALTHY),
            }
            self._pending.event(msgspec.structs.replace(event, **overall))

    def _verdict_result(self, key: str, result: ProbeResult, healthy: bool) -> ProbeResult:
        # This probe may disagree with the majority.
        if result.ok == healthy:
            return result
        return ProbeResult("" if healthy else self._conditions[key].reason or Reason.OTHER)

    def _drop(self, key: str, now_ms: int) -> None:
        placed, condition = self._placed[key], self._conditions.get(key)
        turn = suspended(condition, now_ms)[1] if condition else None
        if turn:
            self._pending.alert(status_alert(placed, turn, self._newest(key), (), now_ms))
        self._forget(key)

    def _forget(self, key: str) -> None:
        for kept in (self._conditions, self._votes, self._verdicts, self._overall_ms):
            kept.pop(key, None)
        self._pending.condition(key, None)


def _lasting(condition: Condition) -> Condition:
    return msgspec.structs.replace(
        condition, undecided_ms=0, failed_ms=condition.failed_ms // 60_000
    )


def _vote(check: HealthCheck, report: Report) -> Vote:
    result = report.result
    return Vote(
        ok=result.ok,
        at_ms=report.at_ms,
        reason=result.reason,
        expected=_expected(check, result),
        code=result.code,
        address=result.address,
    )


def _expected(check: HealthCheck, result: ProbeResult) -> str:
    return (
        ",".join(check.http_config.codes)
        if result.reason == Reason.CODE and check.http_config
        else ""
    )
