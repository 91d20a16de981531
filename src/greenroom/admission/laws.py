"""The laws of conservation, as checks that tests and simulations can run at any moment."""

from collections import Counter
from collections.abc import Iterable

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.ledger.ledger import Ledger


def ledger_problems(ledger: Ledger) -> list[str]:
    lease, line = ledger.lease, ledger.line
    sessions = len(ledger.sessions.inside)
    left = lease.permits + lease.freed + lease.closing + sessions
    right = (
        lease.granted_seen
        - lease.returned_permits
        - lease.returned_freed
        + lease.over
        - lease.settled
    )
    right += ledger.moves.net
    checks = {
        f"{lease.permits} permits, {lease.freed} freed, {lease.closing} closing and {sessions} sessions, of {right} granted": (
            left == right
        ),
        f"permits are {lease.permits}": lease.permits >= 0,
        f"freed units are {lease.freed}": lease.freed >= 0,
        f"closing units are {lease.closing}": lease.closing >= 0,
        f"the debt is {lease.debt}": lease.debt >= 0,
        "there is a debt and something to pay it with": not (
            lease.debt and (lease.permits or lease.freed)
        ),
        "a waiting visitor has a session": not (line.slots.keys() & ledger.sessions.inside.keys()),
        "a waiting visitor has a spent id": not (line.slots.keys() & ledger.sessions.spent.keys()),
        "the line is out of order": _in_order(ledger),
        "the counts by second do not add up": sum(line.seconds.values()) == len(line),
    }
    return [problem for problem, holds in checks.items() if not holds]


def coordinator_problems(coordinator: Coordinator) -> list[str]:
    centers = coordinator.data_centers.values()
    held = sum(center.held + center.orphans for center in centers)
    problems = []
    if coordinator.pool + held != coordinator.total:
        problems.append(
            f"{coordinator.pool} in the pool and {held} held make {coordinator.pool + held}, not"
            f" {coordinator.total}"
        )
    problems += [
        f"{center.name} holds {center.held} and owes {center.owed}"
        for center in centers
        if center.held + center.owed < 0
    ]
    problems += [
        f"{center.name} has {center.outstanding} outstanding"
        for center in centers
        if center.outstanding < 0
    ]
    return problems + sum_problems(coordinator)


def sum_problems(coordinator: Coordinator) -> list[str]:
    centers, kept = coordinator.data_centers.values(), coordinator.sums
    reachable = [center for center in centers if center.reachable]
    made = {
        "value": sum(center.value for center in centers),
        "owed": sum(center.owed for center in centers),
        "outstanding": sum(max(0, center.outstanding) for center in centers),
        "uncovered": sum(center.uncovered for center in reachable),
    }
    found = [
        f"the sum of {name} is {total}, but {getattr(kept, name)} is kept"
        for name, total in made.items()
        if total != getattr(kept, name)
    ]
    line = Counter[int]()
    for center in reachable:
        line.update(center.uncovered_seconds())
        found += [f"{center.name}: {center.minute} in the minute"] * (
            center.minute != sum(count for _, count in center.leaving)
        )
    if coordinator.ranked_seconds not in (None, line):
        found.append("the whole line is not the sum of its parts")
    return found


def problems(coordinator: Coordinator, ledgers: Iterable[Ledger]) -> list[str]:
    """True whatever messages are in transit."""
    found = coordinator_problems(coordinator)
    for ledger in ledgers:
        found += ledger_problems(ledger)
        center, lease = coordinator.data_centers[ledger.data_center], ledger.lease
        if center.epoch != ledger.epoch:
            continue
        # it may hold more than it has reported to this coordinator
        unheard = coordinator.doubting and ledger.data_center in coordinator.doubted
        pairs = {
            "permits that were never granted": (
                0 if unheard else lease.granted_seen,
                center.granted,
            ),
            "returned permits": (center.returned_permits, lease.returned_permits),
            "returned freed units": (center.returned_freed, lease.returned_freed),
            "permits used": (center.used, lease.used),
        }
        found += [
            f"{center.name}: {what}: {less} > {more}"
            for what, (less, more) in pairs.items()
            if less > more
        ]
    return found


def _in_order(ledger: Ledger) -> bool:
    keys = [key for _, key in ledger.line.in_order()]
    return keys == sorted(keys) and len(keys) == len(ledger.line)
