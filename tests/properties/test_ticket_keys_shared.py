"""Several processes share one key file: no ticket is ever refused because of a rotation, regardless
of which one sealed it and when.
"""

import tempfile
from pathlib import Path

from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from greenroom.decision.tickets import Sealer
from greenroom.keys.ticket_keys import KEY_AGE_MAX_MS, SEALS_MAX, KeyRing
from greenroom.model.visit import PLACE_KEPT_MS, Ticket, make_key

NOW = 1_700_000_000_000
TEND_EVERY_MS = 1_000
LONGEST_LIFE_MS = 30 * 60_000 + PLACE_KEPT_MS
ROOM = b"room"


class Fleet(RuleBasedStateMachine):
    """Three processes that look at the file once a second, each at its own phase, as the runtime
    does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now_ms = NOW
        self.rings = [KeyRing(Path(self.folder.name), NOW) for _ in range(3)]
        self.sealers = [Sealer(ring) for ring in self.rings]
        self.sealed: list[tuple[int, bytes, Ticket]] = []

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(
        ms=st.integers(1, 20_000) | st.sampled_from([60_000, 5 * 60_000, LONGEST_LIFE_MS - 1_000])
    )
    def time_passes(self, ms: int) -> None:
        """Long stretches in which nothing is sealed need no look between."""
        for offset in (
            range(0, ms, TEND_EVERY_MS) if ms <= 20_000 else (0, ms // 2, ms - TEND_EVERY_MS, ms)
        ):
            for place, ring in enumerate(self.rings):
                ring.tend(self.now_ms + max(0, offset - place * 300))
        self.now_ms += ms
        self.tend_all()

    def tend_all(self) -> None:
        for place, ring in enumerate(self.rings):
            ring.tend(self.now_ms - place * 300)

    @rule()
    def a_day_passes(self) -> None:
        self.now_ms += KEY_AGE_MAX_MS
        self.tend_all()

    @rule(who=st.integers(0, 2))
    def somebody_seals(self, who: int) -> None:
        ticket = Ticket(b"%012d" % len(self.sealed), make_key(self.now_ms, 1), 0, self.now_ms, 0)
        self.sealed.append((self.now_ms, self.sealers[who].seal(ticket, ROOM), ticket))

    @rule(who=st.integers(0, 2))
    def an_operator_rotates(self, who: int) -> None:
        if len(self.rings[who].opening) < 20:
            self.rings[who].rotate(self.now_ms)

    @rule(who=st.integers(0, 2))
    def a_key_wears_out(self, who: int) -> None:
        self.rings[who].seals += SEALS_MAX

    @rule(who=st.integers(0, 2))
    def a_process_is_replaced(self, who: int) -> None:
        self.rings[who] = KeyRing(Path(self.folder.name), self.now_ms)
        self.sealers[who] = Sealer(self.rings[who])

    @precondition(lambda self: self.sealed)
    @invariant()
    def every_living_ticket_opens_everywhere(self) -> None:
        for sealed_ms, value, ticket in self.sealed[-20:]:
            if self.now_ms - sealed_ms <= LONGEST_LIFE_MS:
                assert [sealer.open(value, ROOM, self.now_ms) for sealer in self.sealers] == [
                    ticket
                ] * 3


TestFleet = Fleet.TestCase
TestFleet.settings = settings(max_examples=examples(50), stateful_step_count=25, deadline=None)
