"""Who counts as queued although there was room, and who as only asked to show the ticket."""

from greenroom.simulator.ground_truth import GroundTruth
from greenroom.simulator.scenario import START_MS, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.visitor import SimulatedVisitor

SHOW_MS, CALLED_MS = 750, 2_000
SESSION_MS = 60_000


def newcomer(number: int) -> SimulatedVisitor:
    return SimulatedVisitor(number, 0, START_MS)


def test_who_is_let_in_when_the_ticket_comes_back_was_asked_and_nobody_else() -> None:
    truth = GroundTruth(Scenario("quiet", room(10, 10), 1, [], 60))
    asked, refused, beside, full = map(newcomer, range(4))
    truth.held(asked, SHOW_MS, START_MS)
    truth.held(refused, SHOW_MS, START_MS)
    assert (truth.asked, truth.early) == (2, 0), "nobody waits but those who are asked"
    asked.tries = refused.tries = 1
    truth.entering(asked, START_MS + SESSION_MS, START_MS + 1_000)
    truth.held(refused, CALLED_MS, START_MS + 1_000)
    truth.held(refused, CALLED_MS, START_MS + 3_000)
    assert (truth.asked, truth.early) == (1, 1), "the ticket was there, and not enough"
    truth.gone(refused)
    truth.held(beside, CALLED_MS, START_MS + 4_000)
    truth.held(full, CALLED_MS, START_MS + 4_000)
    assert (truth.asked, truth.early) == (1, 2), "behind somebody who is queued"
    assert truth.waiting == 2
