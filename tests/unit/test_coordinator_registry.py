"""All rooms' coordinators side by side: who is answered, what is written down, and rooms and data
centers that come and go.
"""

from admission_world import START_MS, bits, small_room, ticket_id

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.visiting import visit
from greenroom.admission.messages.sync import SyncDown
from greenroom.ledgers.sync.batch import ReportBatch, answer_of, encode
from greenroom.ledgers.sync.coordinator_registry import DORMANT_MS, CoordinatorRegistry
from greenroom.model.room import Room
from greenroom.model.visit import Standing, make_key

FRA, NYC = "fra", "nyc"


def board(
    *rooms: Room,
    names: tuple[str, ...] = (FRA, NYC),
    rows: dict[str, bytes] | None = None,
    now_ms: int = START_MS,
    life: str = "1",
) -> CoordinatorRegistry:
    made = CoordinatorRegistry(bits(1))
    made.restore(rows or {}, now_ms, life)
    made.configure(rooms, names, now_ms)
    return made


def batch(*ledgers: tuple[str, Ledger], now_ms: int = START_MS, number: int = 1) -> bytes:
    return encode(
        ReportBatch(number, {room_id: ledger.report(now_ms) for room_id, ledger in ledgers})
    )


def ask(
    registry: CoordinatorRegistry, name: str, *ledgers: tuple[str, Ledger], now_ms: int = START_MS
) -> dict[str, SyncDown]:
    """One exchange; the answer is applied."""
    sealed = registry.answer(name, batch(*ledgers, now_ms=now_ms), now_ms)
    assert sealed is not None
    answer = answer_of(sealed)
    for room_id, ledger in ledgers:
        if room_id in answer.rooms:
            ledger.apply(answer.rooms[room_id], now_ms)
    return answer.rooms


def written(registry: CoordinatorRegistry, store: dict[str, bytes]) -> None:
    store |= registry.rows()
    for name in registry.forgotten():
        store.pop(name, None)
    registry.written()


def ledgers(room: Room) -> tuple[Ledger, Ledger]:
    return Ledger(room, FRA, 1, START_MS), Ledger(room, NYC, 1, START_MS)


def remembered(
    room: Room, fra: Ledger, nyc: Ledger
) -> tuple[CoordinatorRegistry, dict[str, bytes]]:
    """A coordinator that both data centers have confirmed, and its rows."""
    registry, store = board(room), dict[str, bytes]()
    for _ in range(2):
        ask(registry, FRA, ("r", fra))
        ask(registry, NYC, ("r", nyc))
    written(registry, store)
    return registry, store


def test_no_data_center_gets_anything_before_every_data_center_was_heard() -> None:
    room = small_room()
    fra, nyc = ledgers(room)
    registry = board(room)
    assert ask(registry, FRA, ("r", fra))["r"].granted == 0
    assert ask(registry, NYC, ("r", nyc))["r"].granted == 0
    assert ask(registry, FRA, ("r", fra))["r"].granted == 0, (
        "what New York said may have been on its way for long"
    )
    assert ask(registry, NYC, ("r", nyc))["r"].granted > 0
    assert ask(registry, FRA, ("r", fra))["r"].granted > 0


def test_strangers_and_what_is_no_batch_are_not_answered() -> None:
    room = small_room()
    fra, _ = ledgers(room)
    registry = board(room)
    assert registry.answer("sin", batch(("r", fra)), START_MS) is None
    assert registry.answer(NYC, b"\xc1 nonsense", START_MS) is None
    assert ask(registry, NYC, ("r", fra)) == {}, "a report in another data center's batch"
    assert ask(registry, FRA, ("unknown", fra)) == {}


def test_the_next_coordinator_goes_on_without_asking_anyone_first() -> None:
    room = small_room()
    fra, nyc = ledgers(room)
    registry, store = remembered(room, fra, nyc)
    held = {name: center.held for name, center in registry.coordinators["r"].data_centers.items()}
    following = board(room, rows=store)
    assert {
        name: center.held for name, center in following.coordinators["r"].data_centers.items()
    } == held
    assert not following.coordinators["r"].doubting
    assert ask(following, FRA, ("r", fra))["r"].afresh, "the line was not remembered"


def test_a_session_that_follows_its_visitor_is_written_for_both_data_centers() -> None:
    room = small_room()
    fra, nyc = ledgers(room)
    registry, store = remembered(room, fra, nyc)
    ask(registry, FRA, ("r", fra))
    one, now_ms = ticket_id(1), START_MS
    assert fra.arrive(one, now_ms, 1).standing is Standing.ADMITTED
    visit(nyc, one, make_key(now_ms, 1), FRA, now_ms, now_ms, now_ms, 1)
    for name, ledger in ((NYC, nyc), (FRA, fra), (FRA, fra)):
        ask(registry, name, ("r", ledger))  # claimed, wanted, given
        written(registry, store)
    centers = board(room, rows=store).coordinators["r"].data_centers
    assert (centers[FRA].moved_out, centers[NYC].moved_in) == (1, 1)


def test_rows_of_an_earlier_life_are_believed_only_when_everybody_has_confirmed_them() -> None:
    room, store = small_room(), dict[str, bytes]()
    fra, nyc = ledgers(room)
    registry = board(room)
    ask(registry, FRA, ("r", fra))
    written(registry, store)
    following = board(room, rows=store, life="2")
    assert following.coordinators["r"].doubted == {FRA, NYC}
    written(following, store)
    third = board(room, rows=store, life="2")
    assert third.coordinators["r"].doubted == {FRA, NYC}, "doubts are remembered too"
    for _ in range(2):
        ask(third, FRA, ("r", fra))
        ask(third, NYC, ("r", nyc))
    written(third, store)
    assert not board(room, rows=store, life="2").coordinators["r"].doubted


def test_one_that_left_the_list_while_its_row_may_be_too_old_is_waited_for() -> None:
    room = small_room()
    fra, nyc = ledgers(room)
    _, store = remembered(room, fra, nyc)
    following = board(room, names=(FRA,), rows=store, life="2")
    alone = following.coordinators["r"]
    for now_ms in (START_MS, START_MS, START_MS + fra.life_ms + 4_000):
        ask(following, FRA, ("r", fra), now_ms=now_ms)
    assert (alone.doubted, alone.doubting) == (set(), True)
    ask(following, FRA, ("r", fra), now_ms=START_MS + fra.life_ms + 5_001)
    assert not alone.doubting


def test_a_quiet_data_center_is_not_written_down_again() -> None:
    room, store = small_room(), dict[str, bytes]()
    fra, nyc = ledgers(room)
    registry = board(room)
    now_ms = START_MS
    for _ in range(20):
        now_ms += 1_500
        ask(registry, FRA, ("r", fra), now_ms=now_ms)
        ask(registry, NYC, ("r", nyc), now_ms=now_ms)
        written(registry, store)
    now_ms += 1_500
    ask(registry, FRA, ("r", fra), now_ms=now_ms)
    assert registry.rows().keys() == {"=", "~"}


def test_a_room_that_was_taken_away_and_comes_back_goes_on_where_it_was() -> None:
    room, other, store = small_room(), small_room(id="other", name="other"), dict[str, bytes]()
    fra, nyc = ledgers(room)
    registry = board(room, other)
    for _ in range(2):
        ask(registry, FRA, ("r", fra))
        ask(registry, NYC, ("r", nyc))
    written(registry, store)
    held = registry.coordinators["r"].data_centers[FRA].held
    registry.configure([other], (FRA, NYC), START_MS + 1)
    assert ask(registry, FRA, ("r", fra), now_ms=START_MS + 1) == {}
    registry.configure([room, other], (FRA, NYC), START_MS + 2)
    coordinator = registry.coordinators["r"]
    assert (coordinator.data_centers[FRA].held, coordinator.doubting) == (held, False)
    registry.configure([other], (FRA, NYC), START_MS + 3)
    registry.configure([other], (FRA, NYC), START_MS + 3 + DORMANT_MS + 1)
    written(registry, store)
    assert not [name for name in store if name == "r" or name.startswith("r|")]


def test_what_a_data_center_held_that_was_taken_away_is_free_when_its_sessions_must_have_ended() -> (
    None
):
    room = small_room()
    fra, nyc = ledgers(room)
    registry = board(room)
    for _ in range(2):
        ask(registry, FRA, ("r", fra))
        ask(registry, NYC, ("r", nyc))
    coordinator = registry.coordinators["r"]
    held = coordinator.data_centers[NYC].held
    assert held > 0
    registry.configure([room], (FRA,), START_MS + 10)
    assert registry.answer(NYC, batch(("r", nyc)), START_MS + 10) is None
    assert coordinator.data_centers[NYC].orphans == held
    assert coordinator.pool + coordinator.data_centers[FRA].held + held == room.total_active_users
    later_ms = START_MS + room.session_ms + room.renewal_age_ms + 6_000
    ask(registry, FRA, ("r", fra), now_ms=later_ms)
    assert NYC not in coordinator.data_centers
    assert coordinator.pool + coordinator.data_centers[FRA].held == room.total_active_users


def test_a_data_center_that_is_added_delays_no_visitor() -> None:
    room = small_room(total_active_users=100, new_users_per_minute=100)
    fra = Ledger(room, FRA, 1, START_MS)
    registry = board(room, names=(FRA,))
    assert ask(registry, FRA, ("r", fra))["r"].granted == 100
    registry.configure([room], (FRA, NYC), START_MS + 10)
    down = ask(registry, FRA, ("r", fra), now_ms=START_MS + 10)["r"]
    assert not down.alone
    assert not registry.coordinators["r"].doubting


def test_damaged_rows_count_as_lost_and_stop_no_coordinator() -> None:
    room = small_room()
    fra, nyc = ledgers(room)
    _, store = remembered(room, fra, nyc)
    for name in store:
        following = CoordinatorRegistry(bits(1))
        assert following.restore({**store, name: b"\xc1 nonsense"}, START_MS, "1") == (
            [name] if name != "~" else []
        )
        following.configure([room], (FRA, NYC), START_MS)
        assert ask(following, FRA, ("r", fra)), name
        coordinator = following.coordinators["r"]
        assert coordinator.doubting, (
            "nothing is granted before every data center has said what it holds"
        )


def test_a_data_center_that_an_operator_calls_dead_is_given_up_unless_it_has_been_heard_since() -> (
    None
):
    room = small_room(total_active_users=4, new_users_per_minute=40)
    fra, nyc = ledgers(room)
    registry, _ = remembered(room, fra, nyc)
    later_ms = START_MS + 60_000
    ask(registry, NYC, (room.id, nyc), now_ms=later_ms)
    held = registry.lost(NYC).held
    word = encode(ReportBatch(1, {}, dead=True))
    assert registry.answer(NYC, word, later_ms + 1_000) is None
    assert registry.lost(NYC) == (held, 0, 0)
    assert registry.answer(NYC, word, later_ms + 10_000) is None
    assert registry.heard_ms[NYC] == later_ms
    assert registry.lost(NYC)[:2] == (0, held)
    assert f"{room.id}|{NYC}" in registry.rows()
    ask(registry, NYC, (room.id, nyc), now_ms=later_ms + 20_000)
    ask(registry, NYC, (room.id, nyc), now_ms=later_ms + 21_000)
    assert nyc.epoch > 1
