"""From single probes to one verdict: an agent votes, a region decides by majority, and so do the
regions.

An agent's vote follows its own probes: it changes only after `consecutive_fails` bad or
`consecutive_successes` good ones in a row. Then `majority` is applied twice, to the votes of a
region and to the verdicts of the regions. It counts against everyone who was asked, not against
those who answered: an agent that is lost or late is a vote that is missing, never one that moves
the others' share. So losing agents can make a verdict unknown, and never turns a healthy origin
unhealthy.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from greenroom.model.health_check import HealthCheck

UNKNOWN, HEALTHY, UNHEALTHY, SUSPENDED = "unknown", "healthy", "unhealthy", "suspended"

REPORT_SLACK_MS = 15_000
"""How late a report may come without its vote growing stale: three times the time between two
reports of an agent.
"""


class Vote(msgspec.Struct, frozen=True):
    """What one agent says about one check, and the run of equal results that its next change grows
    from.
    """

    says: str = UNKNOWN
    ok: bool = True
    run: int = 0
    at_ms: int = 0  # when the newest probe was made
    reason: str = ""  # why the newest probe failed
    expected: str = ""  # codes that were wanted, when the reason is about the code
    code: int = 0  # the code that came, 0 for none
    address: str = ""  # the address that was connected to

    def fresh(self, check: HealthCheck, now_ms: int) -> bool:
        """Whether the agent has probed lately enough: at most two intervals and one probe ago."""
        return (
            now_ms - self.at_ms
            <= 2 * check.interval * 1000 + check.probe_longest_ms + REPORT_SLACK_MS
        )


NO_VOTE = Vote()


def counted(vote: Vote, result: Vote, check: HealthCheck) -> Vote:
    """The vote after one more probe (`result` holds its facts, `says` and `run` are not read). A
    probe that is no newer changes nothing.
    """
    if result.at_ms <= vote.at_ms:
        return vote
    run = vote.run + 1 if vote.run and vote.ok == result.ok else 1
    needed = check.consecutive_successes if result.ok else check.consecutive_fails
    opinion = HEALTHY if result.ok else UNHEALTHY
    return msgspec.structs.replace(
        result, run=min(run, needed), says=opinion if run >= needed else vote.says
    )


def majority(opinions: Collection[str], asked: int) -> str:
    """Unhealthy when more than half of all that were asked say so; healthy when the others could
    not bring that about any more.

    Between the two it is unknown: too few have answered.
    """
    bad = sum(said == UNHEALTHY for said in opinions)
    missing = asked - bad - sum(said == HEALTHY for said in opinions)
    if 2 * bad > asked:
        return UNHEALTHY
    return HEALTHY if asked and 2 * (bad + missing) <= asked else UNKNOWN


class HealthVerdict(msgspec.Struct, frozen=True):
    """What the votes come to now. `vote` is one that the verdict rests on; it holds the reason of a
    failure.
    """

    status: str
    regions: Mapping[str, str]
    vote: Vote = NO_VOTE

    @property
    def failing(self) -> tuple[str, ...]:
        """The regions that find the origin unhealthy."""
        return tuple(region for region, says in self.regions.items() if says == UNHEALTHY)


def judged(
    check: HealthCheck,
    asked: Mapping[str, Sequence[str]],
    votes: Mapping[str, Vote],
    lost: Collection[str],
    now_ms: int,
) -> HealthVerdict:
    """The verdict on a check. `asked` names the agents of each region (core.health.roster), `lost`
    those not heard of.
    """
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
    """A vote with the reason that most give; of equally many the one that comes first in the
    alphabet, so that it does not alternate.
    """
    counts: dict[str, int] = {}
    for vote in votes:
        counts[vote.reason] = counts.get(vote.reason, 0) + 1
    best = min(counts, key=lambda reason: (-counts[reason], reason), default="")
    return next((vote for vote in votes if vote.reason == best), NO_VOTE)
