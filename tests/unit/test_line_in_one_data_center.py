"""A line goes on where it is the only one: the other data center is silent, or has been taken off
the list.
"""

from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.ledger.ledger import Ledger
from greenroom.model.visit import Standing, make_key

VISIT_MS = 15_000


class TwoLines:
    """A visitor a second comes to Paris, and one to Oslo as long as it is in touch; each stays for
    VISIT_MS. Eight may be inside.
    """

    def __init__(self) -> None:
        self.room = small_room(total_active_users=8, new_users_per_minute=100)
        self.now_ms = START_MS
        self.coordinator = Coordinator(["paris", "oslo"], self.room, self.now_ms)
        self.paris, self.oslo = (
            Ledger(self.room, name, 1, self.now_ms) for name in ("paris", "oslo")
        )
        self.in_touch = [self.paris, self.oslo]
        self.came = 0
        self.waiting: dict[int, tuple[Ledger, int]] = {}
        self.inside: dict[int, tuple[Ledger, int]] = {}
        self.entered = {"paris": 0, "oslo": 0}

    def second(self) -> None:
        for ledger in self.in_touch:
            self.came += 1
            self.waiting[self.came] = ledger, make_key(ledger.line_ms(self.now_ms), self.came)
            ledger.sweep(self.now_ms)
        for number, (ledger, key) in list(self.waiting.items()):
            if (
                ledger in self.in_touch
                and ledger.poll(ticket_id(number), key, self.now_ms, number).standing
                is Standing.ADMITTED
            ):
                del self.waiting[number]
                self.inside[number] = ledger, self.now_ms
                self.entered[ledger.data_center] += 1
        for number, (ledger, since_ms) in list(self.inside.items()):
            if ledger in self.in_touch and self.now_ms >= since_ms + VISIT_MS:
                ledger.leave(ticket_id(number), self.now_ms)
                del self.inside[number]
        for ledger in self.in_touch:
            ledger.apply(
                self.coordinator.sync(ledger.report(self.now_ms), self.now_ms, self.came),
                self.now_ms,
            )
        self.now_ms += 1_000

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.second()

    def entered_in_paris(self, seconds: int) -> int:
        before = self.entered["paris"]
        self.seconds(seconds)
        return self.entered["paris"] - before


def test_a_line_moves_on_while_the_other_data_center_is_silent() -> None:
    two = TwoLines()
    two.seconds(90)
    assert two.entered["oslo"] > 10
    assert len(two.paris.line) > 20
    inside = sum(ledger is two.paris for ledger, _ in two.inside.values())
    assert inside >= 3
    two.in_touch = [two.paris]
    two.seconds(30)  # what was granted before is used up
    assert two.entered_in_paris(120) >= 0.8 * inside * 120_000 / (VISIT_MS + 1_000)


def test_a_line_moves_on_when_the_other_data_center_is_taken_off_the_list() -> None:
    two = TwoLines()
    two.seconds(90)
    assert len(two.paris.line) > 20
    two.in_touch = [two.paris]
    two.coordinator.enlist(["paris"], two.now_ms)
    two.seconds(30)
    assert two.entered_in_paris(120) >= 0.8 * 8 * 120_000 / (VISIT_MS + 1_000)
