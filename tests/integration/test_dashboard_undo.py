"""Undo after a change of a room, an event, a rule or a list: the former value through the same
use-case, or a clear refusal.
"""

import html
import re
from dataclasses import replace

import httpx
from dashboard_rig import DashboardRig, Visitor

from greenroom.configuration import list_items, rooms
from greenroom.configuration.list_items import Operations
from greenroom.dashboard.pages.rooms import LABELS

ROOM = "/zones/z1/rooms/r1"
RULES = f"{ROOM}/rules"
MINUTE_MS = 60_000


def offer(visitor: Visitor, answer: httpx.Response) -> str:
    """The number in the undo form of the page that a write leads to; empty when there is none."""
    assert answer.status_code == 303, html.unescape(answer.text)
    page = visitor.get(answer.headers["location"])
    assert page.status_code == 200
    found = re.search(r'action="/undo">.*?name="number" value="(\d+)"', page.text, re.S)
    return found[1] if found else ""


def taken_back(visitor: Visitor, answer: httpx.Response) -> str:
    """Where the undo leads to."""
    number = offer(visitor, answer)
    assert number
    done = visitor.post("/undo", number=number)
    assert done.status_code == 303, html.unescape(done.text)
    assert "Your last change was undone" in visitor.get(done.headers["location"]).text
    return done.headers["location"].partition("?")[0]


def save_room(rig: DashboardRig, visitor: Visitor, **changes: str) -> httpx.Response:
    record = rig.store.read().rooms["r1"].record
    form = {
        name: str(getattr(record, name))
        for name in LABELS
        if type(getattr(record, name)) is not bool
    }
    form |= {name: "true" for name in LABELS if getattr(record, name) is True}
    form |= {"confirm_newcomers": str(record.confirm_newcomers).lower()}
    form["additional_routes"] = "\n".join(
        f"{route.host}{route.path}" for route in record.additional_routes
    )
    form["cors_origins"] = "\n".join(record.cors_origins)
    form["priority_paths"] = "\n".join(record.priority_paths)
    revision = str(rig.store.read().rooms["r1"].revision)
    return visitor.post(f"{ROOM}/edit", **form | changes, revision=revision, step="save")


def test_origins_of_scripts_are_written_one_on_each_line(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    wrong = save_room(dashboard, visitor, cors_origins="https://www.example.com\n*")
    assert (
        wrong.status_code,
        "must be an origin such as https://www.example.com" in wrong.text,
    ) == (400, True)
    save_room(
        dashboard, visitor, cors_origins="https://WWW.example.com/\n\nhttp://localhost:3000\n"
    )
    assert dashboard.store.read().rooms["r1"].record.cors_origins == (
        "https://www.example.com",
        "http://localhost:3000",
    )
    assert (
        "https://www.example.com\nhttp://localhost:3000</textarea>"
        in visitor.get(f"{ROOM}/edit").text
    )


def test_settings_of_a_room_are_taken_back_and_the_audit_log_says_so(
    dashboard: DashboardRig,
) -> None:
    visitor, before = dashboard.person("operator"), dashboard.store.read().rooms["r1"].record
    where = taken_back(
        visitor,
        save_room(
            dashboard,
            visitor,
            total_active_users="777",
            session_duration="9",
            description="<b>new</b>",
        ),
    )
    assert where == ROOM
    assert dashboard.store.read().rooms["r1"].record == before
    last = dashboard.store.audit(1)[0]
    assert (last.author, last.kind, last.action) == ("operator-all (dashboard)", "room", "changed")
    assert (last.before or {})["total_active_users"] == 777


def test_hosts_and_paths_are_not_taken_back_and_nothing_is_offered_when_nothing_changed(
    dashboard: DashboardRig,
) -> None:
    visitor = dashboard.person("operator")
    assert offer(visitor, save_room(dashboard, visitor, total_active_users="777"))
    assert offer(visitor, save_room(dashboard, visitor)) == "", (
        "saved without a change: the change before is another one"
    )
    assert offer(visitor, save_room(dashboard, visitor, path="/elsewhere")) == ""


def test_an_event_is_taken_back_whether_it_was_made_changed_or_removed(
    dashboard: DashboardRig,
) -> None:
    visitor, before = dashboard.person("operator"), dashboard.store.read().events["e1"]
    times = {
        "event_start_time": "2040-01-01T10:00",
        "event_end_time": "2040-01-01T12:00",
        "prequeue_start_time": "",
    }
    made = visitor.post(f"{ROOM}/events/new", name="made", step="save", **times)
    assert "made" in visitor.get(f"{ROOM}/events").text
    assert taken_back(visitor, made) == f"{ROOM}/events"
    assert [event.name for event in dashboard.store.read().events.records()] == [before.record.name]
    removed = visitor.post(
        f"{ROOM}/events/e1/remove", revision=str(before.revision), typed=before.record.name
    )
    assert not dashboard.store.read().events
    taken_back(visitor, removed)
    (again,) = dashboard.store.read().events.records()
    assert replace(again, id="e1", written_times=()) == replace(before.record, written_times=())
    revision = str(dashboard.store.read().events[again.id].revision)
    changed = visitor.post(
        f"{ROOM}/events/{again.id}", name="other", revision=revision, step="save", **times
    )
    assert dashboard.store.read().events[again.id].record.name == "other"
    taken_back(visitor, changed)
    assert replace(dashboard.store.read().events[again.id].record, written_times=()) == replace(
        again, written_times=()
    )


def test_rules_come_back_in_their_order(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")

    def expressions() -> list[str]:
        return [rule.expression for rule in dashboard.store.read().rules["r1"].record.rules]

    before = expressions()
    for step in ("down", "switch", "remove"):
        revision = str(dashboard.store.read().rules["r1"].revision)
        rule = dashboard.store.read().rules["r1"].record.rules[0]
        kept = dashboard.store.read().rules["r1"].record.rules
        assert (
            taken_back(
                visitor, visitor.post(f"{RULES}/{rule.id}/change", step=step, revision=revision)
            )
            == RULES
        )
        assert expressions() == before
        assert [one.enabled for one in dashboard.store.read().rules["r1"].record.rules] == [
            one.enabled for one in kept
        ]
    taken_back(
        visitor, visitor.post(f"{RULES}/new", expression='http.host eq "new"', enabled="true")
    )
    assert expressions() == before


def test_pasted_and_replaced_items_of_a_list_are_taken_back(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")

    def items() -> dict[str, str]:
        return {item.value: item.comment for item in dashboard.store.read().list_items.records()}

    before = items()
    taken_back(visitor, visitor.post("/lists/l1", items="192.0.2.77 # one\n198.51.100.0/24"))
    assert items() == before
    replaced = visitor.post("/lists/l1", items="203.0.113.9", step="replace")
    assert items() == {"203.0.113.9": ""}
    assert taken_back(visitor, replaced) == "/lists/l1"
    assert items() == before
    many = "\n".join(f"10.{number // 250}.{number % 250}.1" for number in range(501))
    assert offer(visitor, visitor.post("/lists/l1", items=many)) == "", (
        "more than can be taken back at once"
    )


def test_what_another_person_changed_since_is_refused_clearly(dashboard: DashboardRig) -> None:
    visitor, other = dashboard.person("operator"), dashboard.person("admin")
    number = offer(visitor, save_room(dashboard, visitor, total_active_users="777"))
    assert other.post("/undo", number=number).status_code == 409, "only the person who made it"
    dashboard.config.change(
        "another", rooms.change("z1", "r1", {"description": "theirs"}, whole=False)
    )
    refused = visitor.post("/undo", number=number)
    assert refused.status_code == 409
    assert "it was changed since" in refused.text
    assert dashboard.store.read().rooms["r1"].record.total_active_users == 777
    number = offer(visitor, visitor.post("/lists/l1", items="192.0.2.77"))
    dashboard.config.change(
        "another",
        list_items.add(
            "l1", [{"ip": "192.0.2.77", "comment": "theirs"}], Operations(), whole=False
        ),
    )
    assert visitor.post("/undo", number=number).status_code == 409


def test_it_is_over_after_half_an_hour_and_after_zones_were_taken_away(
    dashboard: DashboardRig,
) -> None:
    visitor = dashboard.person("operator", "z1")
    answer = save_room(dashboard, visitor, total_active_users="777")
    number = offer(visitor, answer)
    dashboard.clock.at_ms += 31 * MINUTE_MS
    assert offer(visitor, answer) == ""
    assert visitor.post("/undo", number=number).status_code == 409
    dashboard.clock.at_ms -= 31 * MINUTE_MS
    (account,) = [
        entry
        for entry in dashboard.store.read().accounts.values()
        if entry.record.name == "operator-z1"
    ]
    dashboard.put((replace(account.record, zone_ids=("z2",)), ""))
    assert visitor.post("/undo", number=number).status_code == 409
    assert dashboard.store.read().rooms["r1"].record.total_active_users == 777
