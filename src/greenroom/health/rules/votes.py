"""From single probes to one verdict. A vote changes after `consecutive_fails` bad or
`consecutive_successes` good probes in a row. `majority` decides a region, then the regions. It
counts everyone who was asked, so losing agents can make a verdict unknown, but never turns a
healthy origin unhealthy.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from greenroom.model.health_check import HealthCheck

UNKNOWN, HEALTHY, UNHEALTHY, SUSPENDED = "unknown", "healthy", "unhealthy", "suspended"

REPORT_SLACK_MS = 15_000


class Vote(msgspec.Struct, frozen=True):
    says: str = UNKNOWN
    ok: bool = True
    run: int = 0
    at_ms: int = 0  # when the newest probe was made
    reason: str = ""  # why the newest probe failed
    expected: str = ""  # codes that were wanted, when the reason is about the code
    code: int = 0  # the code that came, 0 for none
    address: str = ""  # the address that was connected to

    def fresh(self, check: HealthCheck, now_ms: int) -> bool:
        return (
            now_ms - self.at_ms
            <= 2 * check.interval * 1000 + check.probe_longest_ms + REPORT_SLACK_MS
        )


NO_VOTE = Vote()


def counted(vote: Vote, result: Vote, check: HealthCheck) -> Vote:
    """Takes the facts of `result`, not its `says` and `run`. An older probe changes nothing."""
    if result.at_ms <= vote.at_ms:
        return vote
    run = vote.run + 1 if vote.run and vote.ok == result.ok else 1
    needed = check.consecutive_successes if result.ok else check.consecutive_fails
    opinion = HEALTHY if result.ok else UNHEALTHY
    return msgspec.structs.replace(
        result, run=min(run, needed), says=opinion if run >= needed else vote.says
    )


def majority(opinions: Collection[str], asked: int) -> str:
    """Unhealthy when more than half of all that were asked say so; healthy when the rest could no
    longer cause that; else unknown.
    """
    bad = sum(said == UNHEALTHY for said in opinions)
    missing = asked - bad - sum(said == HEALTHY for said in opinions)
    if 2 * bad > asked:
        return UNHEALTHY
    return HEALTHY if asked and 2 * (bad + missing) <= asked else UNKNOWN


class HealthVerdict(msgspec.Struct, frozen=True):
    """`vote` holds the reason of a failure."""

    status: str
    regions: Mapping[str, str]
    vote: Vote = NO_VOTE

    @property
    def failing(self) -> tuple[str, ...]:
        return tuple(region for region, says in self.regions.items() if says == UNHEALTHY)


def judged(
    check: HealthCheck,
    asked: Mapping[str, Sequence[str]],
    votes: Mapping[str, Vote],
    lost: Collection[str],
    now_ms: int,
) -> HealthVerdict:
    regions, reasons = {}, []
    for region, agents in asked.items():
        heard = [
            votes[agent]
            for agent in agents
            if agent in votes and agent not in lost and votes[agent].fresh(check, now_ms)
        ]
        regions[region] = majority([vote.says for vote in heard], len(agents))
        if regions[region] == UNHEALTHY:
            reasons += [vote for vote in heard if vote.says == UNHEALTHY and not vote.ok]
    status = majority(list(regions.values()), len(regions))
    return HealthVerdict(status, regions, _commonest(reasons) if status == UNHEALTHY else NO_VOTE)


def _commonest(votes: Sequence[Vote]) -> Vote:
    """Ties go by the alphabet, so that the reason does not alternate."""
    counts: dict[str, int] = {}
    for vote in votes:
        counts[vote.reason] = counts.get(vote.reason, 0) + 1
    best = min(counts, key=lambda reason: (-counts[reason], reason), default="")
    return next((vote for vote in votes if vote.reason == best), NO_VOTE)
