"""Conditions that raise alerts, from one picture of a process. `incident` identifies a condition in
the next picture, in another process and after a restart; one that ends with a colon becomes unique
by its start time.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from greenroom.admission.schedule import effective
from greenroom.model.event import Event
from greenroom.model.room import Room

BOUND_TYPES = (
    "greenroom_wait_time",
    "greenroom_event_soon",
    "greenroom_origin_errors",
    "greenroom_certificate_expiring",
)

SOURCES = ("room:", "event:", "center:", "silent:", "origin:", "config-", "certificate:")

ALL = "*"
"""Stands for all data centers."""

AFTER_MS: Mapping[str, tuple[int, int]] = {
    "greenroom_queueing": (3_000, 60_000),
    "greenroom_wait_time": (15_000, 60_000),
    "greenroom_newcomers_confirmed": (
        20_000,
        60_000,
    ),  # shorter than it takes to find out that it was a false alarm: not told
    "greenroom_rejecting": (1_000, 10_000),
    "greenroom_admissions_stopped": (2_000, 5_000),
    "greenroom_data_center_cut_off": (0, 5_000),
    # after the four seconds for which it is not silent: a new coordinator, or a restart, is over by
    # then
    "greenroom_data_center_silent": (11_000, 5_000),
    "greenroom_origin_errors": (0, 60_000),
}
"""Milliseconds until a start and until an end is reported; default: at once."""

REQUESTS_LEAST = 20

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RoomPicture:
    room: Room
    zone_id: str = ""
    events: tuple[Event, ...] = ()
    waiting: int = 0
    active: int = 0
    wait_s: float | None = None
    """Estimated wait of a new visitor."""
    storage_failed: bool = False
    confirms: bool = False
    """New visitors must show their ticket before they are admitted."""
    origin_slow: bool = False
    """Admissions are stopped because the origin, which the room follows, is slow."""
    unmeasured: bool = False
    """The origin that the room follows has not been measured for half a minute."""


@dataclass(frozen=True, slots=True)
class Certificate:
    names: tuple[str, ...]
    not_after_ms: int
    fingerprint: str

    @property
    def name(self) -> str:
        return (self.names[0] if self.names else "this server")[:100]


@dataclass(frozen=True, slots=True)
class Picture:
    now_ms: int
    process: str
    data_center: str = "here"
    several: bool = False
    """Several data centers share the rooms; figures are those of all."""
    speaks_for_all: bool = True
    """This data center reports on whole rooms."""
    rooms: tuple[RoomPicture, ...] = ()
    speaks_for_rooms: bool = True
    """False: only failing ledgers are reported."""
    requests: int = 0
    failed: int = 0
    """Failed requests among `requests`."""
    cut_off_s: float | None = None
    """None when in contact, or when another process reports it."""
    silent: Mapping[str, tuple[float, int]] | None = None
    """Data center -> (seconds of silence, what it holds); None in a process that is not the
    coordinator.
    """
    config_problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Source -> problems of its newest version."""
    certificate: Certificate | None = None
    limits: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlertCondition:
    type: str
    incident: str
    data: Mapping[str, Any]
    subject_id: str = ""
    subject_name: str = ""
    zone_id: str = ""
    alone: bool = False
    """A single event without an end."""


def conditions(picture: Picture) -> Iterator[AlertCondition]:
    for found in picture.rooms:
        if picture.speaks_for_rooms and not found.room.suspended:
            yield from _of_room(picture, found)
        if found.storage_failed:
            yield _room_condition(
                picture,
                found,
                "greenroom_admissions_stopped",
                {"reason": "the ledger cannot be written"},
            )
    yield from _of_process(picture)


def speaks_for(picture: Picture) -> Callable[[str], bool]:
    """Whether an incident ends because this picture lacks its condition."""
    own = [f"{source}:{picture.process}:" for source in ("origin", "config-file", "config-store")]
    own += [f"certificate:{picture.certificate.name}:"] if picture.certificate else []
    if picture.silent is not None:
        own.append("silent:")
    if picture.speaks_for_rooms:
        own += [f"room:{picture.data_center}:", "event:", f"center:{picture.data_center}:"]
        own += [f"room:{ALL}:"] if picture.several and picture.speaks_for_all else []
    return lambda incident: incident.startswith(tuple(own))


def _of_room(picture: Picture, found: RoomPicture) -> Iterator[AlertCondition]:
    now = effective(found.room, found.events, picture.now_ms)
    if picture.speaks_for_all:
        yield from _of_whole_room(picture, found, turns_away=now.turns_away)
    if found.confirms and found.room.confirm_newcomers == "auto":
        yield _room_condition(
            picture, found, "greenroom_newcomers_confirmed", {"active": found.active}
        )
    for event in found.events:
        yield from _of_event(picture, found, event)


def _of_whole_room(
    picture: Picture, found: RoomPicture, *, turns_away: bool
) -> Iterator[AlertCondition]:
    if found.waiting:
        figures = {"waiting": found.waiting, "active": found.active}
        yield _room_condition(picture, found, "greenroom_queueing", figures, whole=True)
    minutes = (
        None
        if found.wait_s is None or not math.isfinite(found.wait_s)
        else math.ceil(found.wait_s / 60)
    )
    for limit in picture.limits.get("greenroom_wait_time", ()):
        if minutes is not None and minutes > limit:
            data = {"minutes": minutes, "limit": limit}
            yield _room_condition(
                picture, found, "greenroom_wait_time", data, more=f"{limit}:", whole=True
            )
    if found.origin_slow and not found.storage_failed:
        reason = {"reason": "its origin is too slow or fails"}
        yield _room_condition(picture, found, "greenroom_admissions_stopped", reason, whole=True)
    if found.unmeasured:
        yield _room_condition(picture, found, "greenroom_capacity_unmeasured", {}, whole=True)
    if turns_away:
        yield _room_condition(picture, found, "greenroom_rejecting", {}, whole=True)


def _of_event(picture: Picture, found: RoomPicture, event: Event) -> Iterator[AlertCondition]:
    if event.suspended:
        return
    name = f"{found.room.id}:{event.id}:{event.event_start_ms}"
    data = {
        **_room_data(found.room),
        "event_id": event.id,
        "event_name": event.name,
        "event_start_time": _time(event.event_start_ms),
        "event_end_time": _time(event.event_end_ms),
    }
    subject = (found.room.id, found.room.name, found.zone_id)
    if event.event_start_ms <= picture.now_ms < event.event_end_ms:
        yield AlertCondition("greenroom_event", f"event:{name}", data, *subject)
    for limit in picture.limits.get("greenroom_event_soon", ()):
        if event.event_start_ms - limit * 60_000 <= picture.now_ms < event.event_start_ms:
            yield AlertCondition(
                "greenroom_event_soon",
                f"event-soon:{limit}:{name}",
                {**data, "limit": limit},
                *subject,
                alone=True,
            )


def _of_process(picture: Picture) -> Iterator[AlertCondition]:
    if picture.cut_off_s is not None:
        data = {"data_center": picture.data_center, "seconds": int(picture.cut_off_s)}
        name = picture.data_center
        yield AlertCondition("greenroom_data_center_cut_off", f"center:{name}:", data, name, name)
    for name, (seconds, held) in (picture.silent or {}).items():
        since = _time(picture.now_ms - int(seconds * 1000))
        data = {"data_center": name, "since": since, "held": held}
        yield AlertCondition("greenroom_data_center_silent", f"silent:{name}:", data, name, name)
    for limit in picture.limits.get("greenroom_origin_errors", ()):
        if picture.requests >= REQUESTS_LEAST and picture.failed * 100 > limit * picture.requests:
            percent = round(picture.failed * 100 / picture.requests)
            data = {"percent": percent, "requests": picture.requests, "limit": limit}
            incident = f"origin:{picture.process}:{limit}:"
            yield AlertCondition(
                "greenroom_origin_errors", incident, data, picture.process, picture.process
            )
    for source, problems in picture.config_problems.items():
        if problems:
            data = {"source": source, "problems": "; ".join(problems)[:1_000]}
            yield AlertCondition(
                "greenroom_config_refused",
                f"config-{source}:{picture.process}:",
                data,
                source,
                source,
            )
    if picture.certificate:
        yield from _of_certificate(picture, picture.certificate)


def _of_certificate(picture: Picture, found: Certificate) -> Iterator[AlertCondition]:
    left_ms = found.not_after_ms - picture.now_ms
    names = ", ".join(found.names)[:150] or "this server"
    for limit in picture.limits.get("greenroom_certificate_expiring", ()):
        if left_ms < limit * DAY_MS:
            data = {
                "names": names,
                "not_after": _time(found.not_after_ms),
                "days": max(0, left_ms // DAY_MS),
                "limit": limit,
            }
            incident = f"certificate:{found.name}:{limit}:{found.fingerprint[:32]}"
            yield AlertCondition(
                "greenroom_certificate_expiring", incident, data, found.name, names
            )


def _room_condition(
    picture: Picture,
    found: RoomPicture,
    type: str,
    data: Mapping[str, Any],
    *,
    more: str = "",
    whole: bool = False,
) -> AlertCondition:
    """`whole`: one incident for all data centers."""
    room = found.room
    source = ALL if whole and picture.several else picture.data_center
    incident = f"room:{source}:{type}:{room.id}:{more}"
    return AlertCondition(
        type, incident, {**_room_data(room), **data}, room.id, room.name, found.zone_id
    )


def _room_data(room: Room) -> dict[str, Any]:
    return {
        "waiting_room_id": room.id,
        "waiting_room_name": room.name,
        "host": room.host,
        "path": room.path,
    }


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
