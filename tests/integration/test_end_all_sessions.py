"""An operator ends all sessions of a room: by the API and from the dashboard, and what a restart
makes of it.
"""

import html
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

from admission_world import FlakyJournal, HandClock, answer_of, bits, small_room, ticket_id
from api_rig import Api, create_token
from dashboard_rig import DashboardRig
from live_rig import LiveRig, plain_origin

from greenroom.admission.lease import CLOSING_MS
from greenroom.configuration import operations, rooms
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Standing

LIVE = "/zones/z2/rooms/r2/live"


def ended_ms(dashboard: DashboardRig) -> int:
    return dashboard.store.read().room_in_operation("r2").sessions_ended_ms


def test_it_wants_the_name_of_the_room_and_is_in_the_audit_log_and_not_undone(
    dashboard: DashboardRig,
) -> None:
    visitor, known = dashboard.person("operator"), dashboard.store.read()
    name, revision = known.rooms["r2"].record.name, str(known.rooms["r2"].revision)
    assert "End all sessions" in visitor.get(LIVE).text
    refused = visitor.post(f"{LIVE}/do/end-sessions", revision=revision, typed="another")
    assert refused.status_code == 400
    assert f"Type {name} to confirm." in html.unescape(refused.text)
    assert ended_ms(dashboard) == 0
    assert visitor.post(f"{LIVE}/do/end-sessions", revision=revision, typed=name).status_code == 303
    assert ended_ms(dashboard) == dashboard.clock.at_ms
    page = visitor.get(LIVE).text
    assert "live-undo" not in page
    entry = dashboard.store.audit(1)[0]
    assert (entry.author, entry.kind) == ("operator-all (dashboard)", "operation")
    assert "ended all sessions in r2" in dashboard.person("viewer").get("/audit").text


def test_a_viewer_may_not(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("viewer")
    assert (
        visitor.post(
            f"{LIVE}/do/end-sessions", typed=dashboard.store.read().rooms["r2"].record.name
        ).status_code
        == 403
    )
    assert ended_ms(dashboard) == 0


def test_no_other_change_forgets_the_moment_and_it_only_grows(dashboard: DashboardRig) -> None:
    for _ in range(2):  # the clock stands still
        dashboard.config.change("test", operations.end_sessions("z2", "r2", "test"))
    assert ended_ms(dashboard) == dashboard.clock.at_ms + 1
    known = dashboard.store.read()
    shown = rooms.show(known, known.rooms["r2"], dashboard.clock.at_ms)
    assert shown["greenroom"]["sessions_ended_time"]
    dashboard.config.change(
        "test", rooms.change("z2", "r2", {**shown, "greenroom": {}}, whole=True)
    )
    dashboard.config.change("test", rooms.change("z2", "r2", {"description": "new"}, whole=False))
    assert ended_ms(dashboard) == dashboard.clock.at_ms + 1


def ledger(clock: HandClock, journal: FlakyJournal, **changes: Any) -> MemoryLedger:
    room = small_room(total_active_users=3, new_users_per_minute=30, **changes)
    return MemoryLedger.restore(room, clock, bits(1), journal, list(journal.payloads))


def test_units_are_free_after_the_last_proof_also_when_the_process_was_killed_meanwhile() -> None:
    for restarted in (False, True):
        clock, journal = HandClock(), FlakyJournal()
        found = ledger(clock, journal)
        inside = [
            one
            for one in map(ticket_id, range(3))
            if answer_of(found.arrive, one, 0).standing is Standing.ADMITTED
        ]
        assert len(inside) == 3
        clock.ms += 2_000
        room = replace(found._room, sessions_ended_ms=clock.ms)
        found.configure(room)
        assert {answer_of(found.view, one).standing for one in inside} == {Standing.GONE}
        if restarted:
            found = MemoryLedger.restore(room, clock, bits(2), journal, list(journal.payloads))
        entered = []
        for second in range(10):
            found.tick()
            if answer_of(found.arrive, ticket_id(100 + second), 0).standing is Standing.ADMITTED:
                entered.append(second)
            clock.ms += 1_000
        assert entered
        assert entered[0] * 1_000 >= CLOSING_MS - 1_000, f"after a restart: {restarted}"
        assert not found.problems()


def test_a_ledger_that_was_stopped_meanwhile_hears_of_it_at_its_start() -> None:
    clock, journal = HandClock(), FlakyJournal()
    found = ledger(clock, journal)
    assert answer_of(found.arrive, ticket_id(1), 0).standing is Standing.ADMITTED
    clock.ms += 2_000
    ended = ledger(clock, journal, sessions_ended_ms=clock.ms)
    assert answer_of(ended.view, ticket_id(1)).standing is Standing.GONE
    clock.ms += CLOSING_MS + 1_000
    ended.tick()
    assert [answer_of(ended.arrive, ticket_id(number), 0).standing for number in (2, 3, 4)] == [
        Standing.ADMITTED
    ] * 3


def test_the_api_ends_them_in_a_running_process(shared_greenroom: Any) -> None:
    with plain_origin() as origin:
        dashboard = LiveRig.start(shared_greenroom, origin)
        cookies = [
            cookie for refresh_s, cookie in (dashboard.visit() for _ in range(10)) if not refresh_s
        ]
        assert len(cookies) == 10
        assert dashboard.visit(cookies[0])[0] == 0
        path = f"/zones/{dashboard.zone_id}/waiting_rooms/{dashboard.room_id}"
        answer = dashboard.api.ask("POST", f"{path}/end_sessions")
        assert answer.result["greenroom"]["sessions_ended_time"]
        shared_greenroom.eventually(
            lambda: dashboard.visit(cookies[0])[0] > 0,
            "the minute is used up, so a visitor without a session waits",
        )
        with urlopen(f"{dashboard.base}/metrics") as metrics:
            assert b'greenroom_room_sessions_ended_timestamp_seconds{room="sale"}' in metrics.read()
        reading = Api(
            dashboard.running.control,
            create_token(shared_greenroom.data, "reader", "--scope", "read"),
        )
        refused = reading.ask("POST", f"{path}/end_sessions")
        assert refused.status == 403
