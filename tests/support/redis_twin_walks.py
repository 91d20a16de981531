"""Random stretches of life of two ledgers that must agree (`redis_twin`): a room, visitors who
move, floods, and partings.
"""

from random import Random

import redis
from admission_world import START_MS, small_room, ticket_id
from redis_twin import Twin

from greenroom.admission.messages.moves import MovesUp
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.model.visit import Outcome, Standing, make_key

HERE = "here"


def walk(server: redis.Redis, seed: int, steps: int = 250, table: bool = False) -> list[str]:
    """A stretch of life of a small room, as crowds live it; what differs between the two first of
    all.

    `table`: in order of arrival, with a table of the line that is read now and then.
    """
    draw, abroad, passing, fence = (
        Random(seed),
        Random(f"{seed} abroad"),
        Random(f"{seed} passing"),
        Random(f"{seed} fence"),
    )
    looks, ending, borrowing, failing = (
        Random(f"{seed} table"),
        Random(f"{seed} ending"),
        Random(f"{seed} borrowing"),
        Random(f"{seed} failing"),
    )
    passed = 0
    method = draw.choice(("fifo", "fifo", "random", "random", "passthrough", "reject"))
    method = "fifo" if table else method
    limits = {
        "total_active_users": draw.choice((1, 3, 8, 20)),
        "new_users_per_minute": draw.choice((2, 6, 40, 300)),
    }
    alone = draw.random() < 0.5
    room = small_room(
        queueing_method=method,
        refresh_max_seconds=draw.choice((2, 5, 20)),
        line_table=table,
        confirm_newcomers="auto" if seed % 2 else False,
        **limits,
    )
    twin = Twin(
        server, room, seed, (HERE,) if alone else (HERE, "there"), fence.choice((0, 3_000, 15_000))
    )
    twin.hear_from_there_alive(alone)
    people: dict[int, int] = {}
    due: dict[int, int] = {}
    late: list[SyncDown] = []
    for _ in range(steps):
        twin.advance(
            draw.choice((0, 1, 40, 255, 256, 600, 1_000, 1_300))
            if draw.random() < 0.97
            else draw.choice((5_000, 20_000, 61_000))
        )
        if fence.random() < 0.05:
            twin.hear_from_there_alive(alone)
            twin.advance(1)
            twin.hear_from_there_alive(alone)
        _live(twin, draw, fence, people, due)
        if not alone and people and abroad.random() < 0.05:
            number = abroad.randrange(len(people))
            twin.visit(
                ticket_id(number),
                people[number],
                "there",
                twin.now_ms - abroad.choice((0, 500, 1_500, 30_000)),
            )
        if people and failing.random() < 0.4:
            number = failing.randrange(len(people))
            if failing.random() < 0.5:
                twin.fail(ticket_id(number))
            elif twin.view(ticket_id(number)).kept_ms or failing.random() < 0.2:
                twin.reenter(ticket_id(number), people[number])
        if ending.random() < 0.03:
            twin.end_all_sessions(ending.choice((0, 0, 1, -1_000)))
        if passing.random() < 0.3:
            if passed and passing.random() < 0.3:
                twin.view(ticket_id(10**6 + passing.randrange(passed)))
            else:
                twin.arrive_provisionally(ticket_id(10**6 + passed))
                passed += 1
                if twin.could_borrow and borrowing.random() < 0.4:
                    twin.apply(twin.answered(twin.report(1)))
                    twin.arrive_provisionally(ticket_id(10**6 + passed))
                    passed += 1
        if draw.random() < 0.3:
            twin.sync()
            twin.hear_from_there_alive(alone)
        elif draw.random() < 0.1:  # an answer comes late, after others
            late.append(twin.answered(twin.report()))
            twin.apply(late[draw.randrange(len(late))])
        if table and looks.random() < 0.3:
            twin.line_table()
        if draw.random() < 0.02:
            twin.configure(**_change(draw))
        twin.compare()
        if twin.found:
            break
    return twin.found


def moving(server: redis.Redis, seed: int) -> list[str]:
    """A visitor of here is there for a moment and comes back, before the session has; one whose
    session was missed comes after all; and a ticket of a provisional session comes back there.
    """
    twin = Twin(
        server, small_room(total_active_users=8, new_users_per_minute=60), seed, (HERE, "there")
    )
    one, key, other, reports = ticket_id(1), make_key(START_MS, 1), ticket_id(2), 0

    def hear(
        claims: tuple[tuple[bytes, str, int], ...], gifts: tuple[tuple[bytes, str, int], ...] = ()
    ) -> None:
        nonlocal reports
        reports += 1
        moves = MovesUp(len(gifts), gifts, twin.arrived_there, claims)
        up = SyncUp(
            "there", 1, reports, twin.now_ms, 0, 0, 0, 0, 0, 0, 0, (), 0, 0, 0, (), 0.0, moves=moves
        )
        twin.hear_from_there(up)
        twin.advance(100)

    for _ in range(3):
        hear(())
        twin.sync()
        twin.advance(60_000)
    hear(())
    twin.sync()
    admitted = twin.arrive(one)
    twin.law(admitted.standing is Standing.ADMITTED, f"not let in: {admitted}")
    twin.advance(2_000)
    hear(((one, HERE, 500), (other, HERE, 500)))
    twin.apply(
        twin.answered(twin.report())
    )  # the one session is given, and the other one is not here
    back = twin.visit(one, key, HERE, admitted.renewed_ms)
    twin.law(
        back.standing is Standing.ACTIVE, f"a visitor whose session went there has lost it: {back}"
    )
    first = twin.report()
    twin.report()  # says so once more
    hear((), ((other, HERE, 700),))
    twin.apply(
        twin.answered(first)
    )  # not the newest answer: it brings the other session, and does not say what was heard
    missing = twin.report()[0].moves
    twin.law(twin.view(other).standing is Standing.ACTIVE, "the other session has not come")
    twin.law(
        missing is not None and not missing.unknown, f"a session that is here is missed: {missing}"
    )
    passed = ticket_id(3)
    twin.law(twin.arrive_provisionally(passed).standing is Standing.ADMITTED, "it does not pass")
    hear(((passed, HERE, 50_000),))
    twin.apply(twin.answered(twin.report()))
    moves = twin.report()[0].moves
    twin.law(moves is not None and moves.gifts[-1][2] < 1_000, f"no full session: {moves}")
    for _ in range(3):
        twin.compare()
        twin.sync()
        twin.visit(one, key, HERE, admitted.renewed_ms)
        twin.advance(70_000)
    return twin.found


def brought_again(server: redis.Redis, seed: int) -> list[str]:
    """A session comes and another one goes, and the next coordinator, without a memory, brings both
    again.
    """
    twin = Twin(
        server, small_room(total_active_users=8, new_users_per_minute=60), seed, (HERE, "there")
    )
    one, other = ticket_id(1), ticket_id(2)
    reports = 0

    def hear(moves: MovesUp | None = None) -> None:
        nonlocal reports
        reports += 1
        up = SyncUp(
            "there", 1, reports, twin.now_ms, 0, 0, 0, 0, 0, 0, 0, (), 0, 0, 0, (), 0.0, moves=moves
        )
        twin.hear_from_there(up)
        twin.advance(100)
        twin.sync()
        twin.compare()

    for _ in range(3):
        hear()
    admitted = twin.arrive(one)
    twin.law(admitted.standing is Standing.ADMITTED, f"not let in: {admitted}")
    twin.advance(1_000)
    hear(MovesUp(1, ((other, HERE, 500),), 0))
    twin.law(twin.view(other).standing is Standing.ACTIVE, "the other session has not come")
    kept = ((1, other, HERE, 600),)
    hear(MovesUp(1, (), 0, ((one, HERE, 500),), (), kept))
    hear(MovesUp(1, (), 0, (), (), kept))
    named = twin.report()[0].moves
    twin.law(bool(named and named.kept), f"the gift on its way is not named: {named}")
    twin.lose_the_coordinators()
    for _ in range(4):
        hear(MovesUp(1, (), 0, (), (), kept))
    twin.law(len(twin.ledgers.sessions.inside) == 1, "one session has become two")
    hear(MovesUp(1, (), 1, (), (), kept))
    named = twin.report()[0].moves
    twin.law(bool(named and not named.kept), f"a gift that was taken is still named: {named}")
    return twin.found


def searching(server: redis.Redis, seed: int) -> list[str]:
    """Visitors whose tickets are over, and who were served on trust elsewhere since: in vain, cut
    off, found, after the end of all sessions; and pages on trust with and without renewals.
    """
    twin = Twin(
        server, small_room(total_active_users=8, new_users_per_minute=60), seed, (HERE, "there")
    )
    for _ in range(3):
        twin.hear_from_there_alive(False)
        twin.sync()
        twin.advance(500)

    def comes(number: int, served_s: int, renewed_s: int = 70) -> Outcome:
        """Served on trust so many seconds ago."""
        one, renewed_ms = ticket_id(number), twin.now_ms - 1000 * renewed_s
        outcome = twin.visit(
            one, make_key(START_MS, number), "there", renewed_ms, twin.now_ms - 1000 * served_s
        )
        twin.compare()
        return outcome

    def comes_with_its_session(given: int, number: int) -> None:
        """`given`: sessions that came from there by then."""
        twin._reports_there += 1
        moves = MovesUp(given, ((ticket_id(number), HERE, 1_000),), twin.arrived_there, ())
        up = SyncUp(
            "there", 1, twin._reports_there, twin.now_ms, 0, 0, 0, 0, 0, 0, 0, (), 0, 0, 0, (), 0.0,
            moves=moves,
        )  # fmt: skip
        twin.hear_from_there(up)
        twin.sync()
        twin.law(twin.view(ticket_id(number)).standing is Standing.ACTIVE, "a session is missing")

    twin.law(comes(1, 61).standing is Standing.GONE, "a session is searched that must be over")
    twin.law(comes(1, 60).searching, "no session is searched")
    twin.sync()
    twin.advance(1_000)
    twin.law(comes(1, 61).standing is Standing.GONE, "searched for too long")
    twin.law(comes(2, 5).searching, "no session is searched")
    twin.sync()
    twin.advance(500)
    twin.law(comes(2, 5).standing is Standing.GONE, "a denied search goes on")
    twin.law(comes(3, 5).searching, "no session is searched")
    comes_with_its_session(1, 3)
    twin.law(comes(4, 0, 30).refresh_ms == 30_000, "the time of a page on trust is not told")
    twin.law(comes(8, 58, 58).searching, "a page is served that may not be kept to")
    twin.law(comes(5, 5).searching, "no session is searched")
    for _ in range(10):
        twin.advance(500)
        twin.compare()
    twin.law(comes(5, 5).standing is Standing.GONE, "a search goes on without contact")
    twin.sync()
    twin.end_all_sessions(0)
    twin.law(comes(6, 5).standing is Standing.GONE, "a session is searched that was ended")
    twin.advance(2_000)
    twin.sync()
    twin.configure(disable_session_renewal=True)
    twin.law(comes(7, 0, 1).refresh_ms == 0, "a page on trust renews where nothing does")
    twin.advance(500)
    comes_with_its_session(2, 7)
    return twin.found


def _live(
    twin: Twin, draw: Random, fence: Random, people: dict[int, int], due: dict[int, int]
) -> None:
    """A visitor comes, and the visitor who is due comes back, or does not."""
    if draw.random() < 0.5:
        number = len(people)
        people[number] = make_key(twin.now_ms, number)
        due[number] = twin.now_ms + twin.arrive(ticket_id(number)).refresh_ms
    for number in [one for one, when_ms in due.items() if when_ms <= twin.now_ms][:4]:
        chance = draw.random()
        if chance < 0.1:
            del due[number]
        elif chance < 0.15:
            due[number] = twin.now_ms + draw.choice((2_990, 3_010, 3_300, 30_000))
        else:
            outcome = twin.poll(ticket_id(number), people[number])
            if outcome.called and fence.random() < 0.3:
                gap_ms = fence.choice((10_000, 60_000, 400_000))
                twin.keep(ticket_id(number), gap_ms)
                due[number] = twin.now_ms + gap_ms * fence.choice((90, 110, 120)) // 100
                continue
            due[number] = twin.now_ms + (outcome.refresh_ms or draw.choice((900, 1_100, 30_000)))
    if people and draw.random() < 0.4:
        number = draw.randrange(len(people))
        ask = draw.choice(
            (
                twin.view,
                lambda one: twin.peek(one, people[number]),
                twin.view,
                twin.leave if draw.random() < 0.3 else twin.view,
            )
        )
        ask(ticket_id(number))


def _change(draw: Random) -> dict[str, object]:
    return draw.choice(
        (
            {
                "total_active_users": draw.choice((1, 3, 8)),
                "new_users_per_minute": draw.choice((2, 6, 40)),
            },
            {
                "queueing_method": draw.choice(("fifo", "random", "passthrough", "reject")),
                "queue_all": draw.random() < 0.1,
            },
            {
                "session_duration": draw.choice((1, 2)),
                "disable_session_renewal": draw.random() < 0.3,
            },
        )
    )


def flooded(server: redis.Redis, seed: int) -> Twin:
    """A flood without cookies into an empty room, then a crowd that brings its tickets back, and a
    second flood in it.
    """
    draw = Random(seed)
    twin = Twin(
        server,
        small_room(total_active_users=80, new_users_per_minute=90, confirm_newcomers="auto"),
        seed,
    )
    due: list[tuple[int, bytes, int]] = []
    for number in range(600):
        twin.advance(draw.choice((40, 200, 255, 256, 300)))
        flooding = number < 80 or 300 < number < 360
        if draw.random() < (0.7 if flooding else 0.25):
            one, key = ticket_id(number), make_key(twin.now_ms, number)
            outcome = twin.arrive(one)
            if not flooding:
                due.append((twin.now_ms + (outcome.refresh_ms or 400), one, key))
        while due and due[0][0] <= twin.now_ms:
            _, one, key = due.pop(0)
            outcome = twin.poll(one, key)
            if outcome.standing is Standing.ACTIVE:
                twin.poll(one, key)  # the ticket is not shown for the first time any more
                if draw.random() < 0.2:
                    twin.leave(one)
        if number % 3 == 0:
            twin.sync()
        twin.compare()
        if twin.found:
            break
    return twin


def flooded_for_seconds(server: redis.Redis, seed: int) -> Twin:
    """A flood without cookies of eight seconds and a smaller one, into a room whose sessions are
    longer than the minute that is counted.
    """
    twin = Twin(
        server,
        small_room(
            total_active_users=80,
            new_users_per_minute=40,
            confirm_newcomers="auto",
            session_duration=2,
        ),
        seed,
    )
    for number in range(400):
        twin.advance(100 if number < 80 else 500)
        if number < 80 or 230 < number < 250 or number % 20 == 0:
            twin.arrive(ticket_id(number))
        if number % 3 == 0:
            twin.sync()
        twin.compare()
        if twin.found:
            break
    return twin


def trickling(server: redis.Redis, seed: int) -> list[str]:
    """Newcomers one by one in two data centers: most bring the ticket back, and sometimes only one
    place or admission is left.
    """
    draw = Random(seed)
    twin = Twin(
        server,
        small_room(
            total_active_users=40,
            new_users_per_minute=9,
            session_duration=1,
            confirm_newcomers="auto",
        ),
        seed,
        (HERE, "there"),
    )
    for number in range(200):
        twin.hear_from_there_alive(False)
        twin.sync()
        twin.advance(draw.choice((600, 1_500, 3_000, 6_000)))
        one = ticket_id(number)
        outcome = twin.arrive(one)
        chance = draw.random()
        if chance < 0.1:  # the application revokes the session with its very first answer
            twin.leave(one)
        elif chance < 0.85:
            twin.advance(1_000)
            if outcome.standing is Standing.ADMITTED:
                twin.view(one)
            else:
                twin.poll(one, make_key(twin.now_ms, number))
        if number % 40 == 20:
            twin.configure(
                total_active_users=draw.choice((3, 9, 40)),
                new_users_per_minute=draw.choice((3, 9, 40)),
            )
        twin.compare()
        if twin.found:
            break
    return twin.found


def parting(server: redis.Redis, seed: int) -> list[str]:
    """A data center that says farewell now and then, once with its newest answer still on the way,
    and comes back a little later.
    """
    draw, fence = Random(seed), Random(f"{seed} fence")
    twin = Twin(
        server,
        small_room(total_active_users=60, new_users_per_minute=200, session_duration=1),
        seed,
        (HERE, "there"),
        30_000,
    )
    twin.advance(80_000)  # by now the coordinator need not wait for a complete report from there
    people: dict[int, int] = {}
    due: dict[int, int] = {}
    for step in range(120):
        twin.advance(draw.choice((40, 255, 600, 1_000)))
        _live(twin, draw, fence, people, due)
        twin.hear_from_there_alive(False)
        if step % 30 == 20:
            late = twin.answered(twin.report())
            ups = twin.farewell()
            twin.law(ups is not None, "no farewell was said")
            if ups:
                twin.answered(ups)
            twin.apply(late)
            for number in list(people)[-4:]:
                twin.view(ticket_id(number))
                twin.poll(ticket_id(number), people[number])
            twin.advance(6_000)
        elif step % 30 > 21 or step < 20:
            twin.sync()
        twin.compare()
    return twin.found
