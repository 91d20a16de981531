"""The state of a running greenroom as plain values, for JSON and people."""

from typing import Any

import msgspec

from greenroom.configuration.room_status import center_json
from greenroom.configuration.state import ProcessState, RoomState, StoreState
from greenroom.web.time_format import plain_moment


def status(state: ProcessState) -> dict[str, Any]:
    """No visitor, no ticket, no address of a visitor."""
    config = state.config
    return {
        "version": state.version,
        "phase": state.phase,
        "uptime_seconds": max(0, state.now_ms - state.started_ms) // 1000,
        "clock_ahead_seconds": state.clock_ahead_ms / 1000,
        "listen": state.listen,
        "data": state.data,
        "config": {
            "file": config.file,
            "valid": not config.problems,
            "problems": [
                {"line": found.line, "key": found.pointer, "reason": found.reason}
                for found in config.problems
            ],
            "needs_restart": list(config.pending),
            "reloads": config.reloads,
            "failed_reloads": config.failures,
        },
        "config_store": _store(state.store),
        "unusable": [{"key": found.pointer, "reason": found.reason} for found in state.faults],
        "sync": None if state.sync is None else msgspec.to_builtins(state.sync),
        "analytics": None if state.analytics is None else msgspec.to_builtins(state.analytics),
        "rooms": [_room(room) for room in state.rooms],
        "health_checks": [
            {"name": name, "zone": zone, "status": says} for name, zone, says in state.health.checks
        ],
        "gateway": dict(state.gateway),
    }


def announced(state: RoomState) -> list[dict[str, Any]]:
    return [
        {
            "room": state.room.name,
            "event": draw.event,
            "event_id": draw.event_id,
            "draw": draw.id,
            "commitment": draw.commitment,
            "prequeue_start_time": plain_moment(draw.prequeue_start_ms),
            "event_start_time": plain_moment(draw.event_start_ms),
            "held": draw.held,
        }
        for draw in state.draws
    ]


def _event(state: RoomState) -> dict[str, Any] | None:
    now = state.now
    if now is None or now.event is None:
        return None
    event = now.event
    times = {"starts": event.event_start_ms, "ends": event.event_end_ms}
    return {
        "name": event.name,
        "id": event.id,
        "phase": now.phase.name.lower(),
        **{key: plain_moment(ms) for key, ms in times.items()},
    }


def _store(store: StoreState) -> dict[str, Any]:
    return {
        "store": store.name,
        "reachable": store.reachable,
        "revision": store.revision,
        "valid": not store.problems,
        "problems": [{"key": found.pointer, "reason": found.reason} for found in store.problems],
        "from_copy": store.from_copy,
    }


def _capacity(state: RoomState) -> dict[str, Any] | None:
    """None: fixed."""
    found = state.capacity
    if found is None:
        return None
    return {
        "mode": found.mode,
        "sessions": found.sessions,
        "limit": state.now.active_limit if state.now else found.sessions,
        "stopped": found.stopped,
        "reason": found.reason,
    }


def _room(state: RoomState) -> dict[str, Any]:
    room, figures, estimate = state.room, state.figures, state.figures.estimate
    return {
        "name": room.name,
        "id": room.id,
        "routes": [f"{route.host}{route.path}" for route in room.routes],
        "queueing_method": room.queueing_method,
        "queue_all": room.queue_all,
        "suspended": room.suspended,
        "active_users": figures.active,
        "total_active_users": room.total_active_users,
        "admitted_last_minute": figures.last_minute,
        "new_users_per_minute": room.new_users_per_minute,
        "waiting_users": figures.waiting,
        "permits_unused": figures.permits_unused,
        "admitted_total": state.requests.get("admitted", 0),
        "estimated_wait_seconds": None
        if estimate is None
        else [round(s, 1) for s in (estimate.p25_s, estimate.p50_s, estimate.p75_s)],
        "journal_bytes": figures.journal_bytes,
        "storage_failed": figures.storage_failed,
        "newcomers_confirmed": figures.confirms,
        "data_centers": [center_json(center) for center in figures.centers],
        "origin": state.origin or None,
        "held_for_origin": bool(state.now and state.now.origin_down),
        "capacity": _capacity(state),
        "requests": dict(sorted(state.requests.items())),
        "event": _event(state),
        "draws": announced(state),
    }
