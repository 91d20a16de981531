"""The live page: one room in the hour of its sale, fresh every second."""

from collections.abc import Sequence

import msgspec
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.configuration.dashboard.parts import room_state
from greenroom.configuration.operations import CAPACITY, in_words, lasting, operation_changes
from greenroom.dashboard.live_action_table import ACTIONS, LiveAction
from greenroom.dashboard.live_feed import FEED, UNSEEN, LiveWatcher, live_frame
from greenroom.dashboard.pages.live_actions import UNDO_LABELS, configured_live, fits, undo_of
from greenroom.dashboard.pages.rooms import sale_of
from greenroom.dashboard.room_live import room_live
from greenroom.dashboard.room_minutes import MINUTE_S, LiveMinute, last_hour
from greenroom.decision.cookies import SESSION_COOKIE
from greenroom.model.change import AuditEntry
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

LIVE = "/zones/{zone_id}/rooms/{room_id}/live"
TABLE_MINUTES = 5
CHANGES_SHOWN = 5


def show(page: PageRequest) -> Response:
    entry, now_ms = page.room, page.now_ms
    state = room_state(page, entry.id)
    live = room_live(page.known, entry, state, now_ms)
    trail = page.parts[FEED].trail_of(entry.id)
    if not trail.minutes:
        trail.minutes = last_hour(page.part(ANALYTICS_STORE), entry.id, now_ms)
    sees_all = not page.person.zone_ids
    origin = page.parts[FEED].origin.last_minute() if sees_all else UNSEEN  # counted over all zones
    frame = live_frame(live, state, now_ms, trail, origin)
    undo = undo_of(page) if page.person.may(ACTIONS["limits"].role) else None
    return page.render(
        "live.html",
        entry=entry,
        zone=page.zone,
        now_ms=now_ms,
        live=live,
        frame=frame,
        sale=sale_of(page, entry, live)[1],
        load=load,
        frame_json=msgspec.json.encode(frame).decode(),
        offered=_offered(page),
        undo_labels=UNDO_LABELS,
        undo=undo,
        undo_words=_operated(undo.entries[0]) if undo else "",
        lasting=lasting(page.known, entry.id, now_ms),
        rows=table_rows(trail.minutes),
        capacity=state.capacity if state else None,
        capacity_changes=_capacity_changes(page) if state and state.capacity else [],
        demo=any(minute.generated for minute in trail.minutes),
        recording=page.part(ANALYTICS_STORE) is not None,
    )


def _operated(entry: AuditEntry) -> str:
    """What an operation did, after “You”; empty for other changes."""
    if entry.kind != "operation":
        return ""
    changes = operation_changes(entry)
    return " and ".join(in_words(kind, after, entry.name) for kind, _, after in changes)


def _capacity_changes(page: PageRequest) -> list[tuple[int, str]]:
    """Changes of the limit by the law, with reasons, newest first."""
    found = page.config.store.audit(CHANGES_SHOWN, about=(CAPACITY, page.room.id))
    return [(entry.at_ms, str((entry.after or {}).get("reason"))) for entry in found]


def load(value: int, limit: int) -> str:
    return "over" if value > limit else "full" if value >= limit else ""


def _offered(page: PageRequest) -> list[LiveAction]:
    live = configured_live(page)
    return [
        one for one in ACTIONS.values() if page.person.may(one.role) and fits(one, live, page.room)
    ]


def table_rows(minutes: Sequence[LiveMinute]) -> list[LiveMinute]:
    """The last five minutes, newest first: maxima, and sums of counts."""
    found: dict[int, list[LiveMinute]] = {}
    for one in minutes:
        found.setdefault(one.start_s // (TABLE_MINUTES * MINUTE_S), []).append(one)
    return [
        _together(start * TABLE_MINUTES * MINUTE_S, group)
        for start, group in sorted(found.items(), reverse=True)
    ]


def _together(start_s: int, group: Sequence[LiveMinute]) -> LiveMinute:
    arrivals = [one.arrivals for one in group if one.arrivals is not None]
    return LiveMinute(
        start_s,
        max(one.active for one in group),
        max(one.active_limit for one in group),
        max(one.admitted for one in group),
        max(one.admitted_limit for one in group),
        max(one.waiting for one in group),
        sum(one.abandoned for one in group),
        sum(arrivals) if arrivals else None,
        max((one.waited_p50_s for one in group if one.waited_p50_s is not None), default=None),
        max((one.waited_p95_s for one in group if one.waited_p95_s is not None), default=None),
        any(one.generated for one in group),
    )


async def stream(page: PageRequest) -> Response:
    room = page.room
    if "text/event-stream" not in page.request.headers.get("accept", ""):
        return PlainTextResponse("this address is for the EventSource of the live page\n", 406)
    if page.parts[FEED].is_full:
        return PlainTextResponse("too many live pages are open", 503, {"Retry-After": "10"})
    secret, sees_all = page.cookie(SESSION_COOKIE), not page.person.zone_ids
    watcher = LiveWatcher(room.id, room.parent, secret, sees_all=sees_all)
    return StreamingResponse(
        page.parts[FEED].watch(watcher),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


PAGES = (view(LIVE, show), view(f"{LIVE}/stream", stream))
