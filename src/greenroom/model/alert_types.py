"""Every type of alert: its filters, fields, text and example. `{name}` in a text is a field of the
row, `{subject}` the room, check or data center; `{name:minute}` is a number of minutes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from greenroom.model.alert import TEXT_MAX, Alert, AlertState
from greenroom.model.fields import plural


class _Counted(int):
    def __format__(self, noun: str) -> str:
        return f"{int(self)} {plural(self, noun)}" if noun else str(int(self))


@dataclass(frozen=True, slots=True)
class PolicyFilter:
    """An alert passes if `read` returns a wanted value. `bound`: a number that the source compares
    with.
    """

    help: str
    read: Callable[[Alert], tuple[str, ...]]
    choices: tuple[str, ...] = ()
    bound: bool = False
    default: str = ""
    low: int = 0
    high: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class AlertType:
    """Without `end_text` alerts of this type have no end."""

    type: str
    category: str
    display_name: str
    description: str
    text: str
    end_text: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, PolicyFilter] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    example_subject: str = "shop"
    severity: str = "error"
    title: str = ""
    end_title: str = ""
    """In messages to people; empty: the display name."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Labels of the fields in messages to people; empty: all fields."""
    path: str = ""
    """The subject's page in the dashboard."""

    @property
    def paired(self) -> bool:
        return bool(self.end_text)


def _subject(alert: Alert) -> tuple[str, ...]:
    return (alert.subject_id, alert.subject_name)


def _zone(alert: Alert) -> tuple[str, ...]:
    return (alert.zone_id,)


def _field(name: str) -> Callable[[Alert], tuple[str, ...]]:
    return lambda alert: (str(alert.data.get(name, "")),)


ROOMS = "Waiting Room"
HEALTH = "Health Checks"
SYSTEM = "greenroom"

_ZONES = PolicyFilter("ids of zones", _zone, label="Zones")
_BY_DATA_CENTER = {
    "data_center": PolicyFilter("names of data centers", _subject, label="Data centers")
}
_BY_ROOM = {
    "waiting_room_id": PolicyFilter(
        "ids or names of waiting rooms", _subject, label="Waiting rooms"
    ),
    "zones": _ZONES,
}
_ROOM_FIELDS = {
    "waiting_room_id": "id of the room",
    "waiting_room_name": "name of the room",
    "host": "host that the room covers",
    "path": "path that the room covers",
}
_ROOM_EXAMPLE = {
    "waiting_room_id": "0" * 31 + "1",
    "waiting_room_name": "shop",
    "host": "shop.example.com",
    "path": "/",
}


def _bound(help: str, default: int, low: int, high: int) -> PolicyFilter:
    return PolicyFilter(
        f"{help} ({low} to {high}, {default} when it is left out)",
        _field("limit"),
        (),
        True,
        str(default),
        low,
        high,
    )


def _room_type(
    type: str, display_name: str, description: str, text: str, end_text: str, **more: Any
) -> AlertType:
    fields = {**_ROOM_FIELDS, **more.pop("fields", {})}
    return AlertType(
        type,
        ROOMS,
        display_name,
        description,
        text,
        end_text,
        path="/zones/{zone}/rooms/{subject}/live",
        fields=fields,
        filters={**_BY_ROOM, **more.pop("filters", {})},
        example={**_ROOM_EXAMPLE, **more.pop("example", {})},
        **more,
    )


_EVENT_FIELDS = {
    "event_id": "id of the event",
    "event_name": "name of the event",
    "event_start_time": "when it begins",
    "event_end_time": "when it ends",
}
_EVENT_EXAMPLE = {
    "event_id": "0" * 31 + "2",
    "event_name": "sale",
    "event_start_time": "2030-11-29T09:00:00Z",
    "event_end_time": "2030-11-29T18:00:00Z",
}

_ROWS = (
    AlertType(
        "health_check_status_notification",
        HEALTH,
        "Health status notification",
        "A health check finds that an origin has become unhealthy, or healthy again.",
        "Health check {subject} is now {status}: {reason}.",
        "Health check {subject} is now {status}.",
        title="{subject} is unhealthy",
        end_title="{subject} is healthy again",
        shown={
            "status": "Status",
            "reason": "Reason",
            "expected_codes": "Expected codes",
            "actual_code": "Received code",
            "origin_ip": "Server",
            "failing_regions": "Failing regions",
            "zone_name": "Zone",
        },
        path="/zones/{zone}/health/{subject}",
        fields={
            "time": "when the status changed",
            "status": "Healthy or Unhealthy",
            "reason": "why, `No failures` when healthy",
            "name": "name of the check",
            "expected_codes": "the codes that would have been right",
            "actual_code": "the code that came",
            "health_check_id": "id of the check",
            "health_check_name": "name of the check",
            "account_name": "name of the account",
            "account_tag": "id of the account",
            "failing_regions": "regions that find it unhealthy",
            "new_health_status": "healthy or unhealthy",
            "new_status": "Healthy or Unhealthy",
            "old_status": "Healthy or Unhealthy",
            "origin_ip": "address that was probed",
            "status_change_time": "when the status changed",
            "time_since_last_failure": "how long ago it failed before, in words",
            "zone_name": "name of the zone",
            "zone_tag": "id of the zone",
        },
        filters={
            "health_check_id": PolicyFilter(
                "ids of health checks", _subject, label="Health checks"
            ),
            "status": PolicyFilter(
                "Healthy or Unhealthy", _field("status"), ("Healthy", "Unhealthy")
            ),
            "zones": _ZONES,
        },
        example={
            "time": "2030-11-29 09:00:00 +0000 UTC",
            "status": "Unhealthy",
            "reason": "TCP connection failed",
            "name": "shop",
            "expected_codes": "[200]",
            "actual_code": 0,
            "health_check_id": "0" * 31 + "3",
            "health_check_name": "shop",
            "account_name": "greenroom",
            "account_tag": "67726565656e726f6f6d000000000001",
            "failing_regions": "WEU",
            "new_health_status": "unhealthy",
            "new_status": "Unhealthy",
            "old_status": "Healthy",
            "origin_ip": "192.0.2.1",
            "status_change_time": "2030-11-29T09:00:00Z",
            "time_since_last_failure": "none",
            "zone_name": "example.com",
            "zone_tag": "0" * 31 + "4",
        },
    ),
    _room_type(
        "greenroom_queueing",
        "Waiting room is queueing",
        "A waiting room begins to hold visitors, or no longer holds any.",
        "Waiting room {subject} has begun queueing: {waiting} waiting, {active} on the site.",
        "Waiting room {subject} is no longer queueing.",
        fields={"waiting": "visitors in line", "active": "visitors on the site"},
        example={"waiting": 120, "active": 5000},
        severity="warning",
    ),
    _room_type(
        "greenroom_wait_time",
        "Estimated wait above a limit",
        "New visitors would wait longer than a number of minutes, or no longer so.",
        "New visitors of waiting room {subject} wait about {minutes:minute}, more than {limit}.",
        "New visitors of waiting room {subject} wait no longer than {limit:minute}.",
        fields={"minutes": "estimated wait of a new visitor", "limit": "the limit in minutes"},
        filters={"limit": _bound("limit in minutes", 10, 1, 1_440)},
        example={"minutes": 14, "limit": 10},
        severity="warning",
    ),
    _room_type(
        "greenroom_newcomers_confirmed",
        "Suspected bot traffic",
        "Requests without cookies hold their share of a waiting room with `confirm_newcomers ="
        ' "auto"`, and new visitors are let in only after their ticket came back; or no longer so.',
        "New visitors of waiting room {subject} who do not bring their ticket back, such as"
        " monitors or a flood of requests without cookies, hold a quarter of a limit. Others are"
        " let in only after their ticket came back. On the site: {active:visitor}.",
        "New visitors of waiting room {subject} are let in at once again.",
        fields={"active": "visitors on the site"},
        example={"active": 1200},
        severity="warning",
    ),
    _room_type(
        "greenroom_rejecting",
        "All new visitors are turned away",
        "The queueing method of a waiting room, or of its event, is `reject` and visitors are"
        " turned away, or no longer so.",
        "Waiting room {subject} turns all new visitors away (queueing method reject).",
        "Waiting room {subject} accepts new visitors again.",
        severity="warning",
    ),
    _room_type(
        "greenroom_event_soon",
        "Event starts soon",
        "An event of a waiting room starts within a number of minutes.",
        "Event {event_name} of waiting room {subject} starts at {event_start_time}.",
        "",
        fields={**_EVENT_FIELDS, "limit": "how many minutes before the start"},
        filters={"limit": _bound("minutes before the start", 15, 1, 1_440)},
        example={**_EVENT_EXAMPLE, "limit": 15},
        severity="info",
    ),
    _room_type(
        "greenroom_event",
        "Event started or ended",
        "An event of a waiting room starts or ends.",
        "Event {event_name} of waiting room {subject} has started and ends at {event_end_time}.",
        "Event {event_name} of waiting room {subject} has ended.",
        fields=_EVENT_FIELDS,
        example=_EVENT_EXAMPLE,
        severity="info",
    ),
    AlertType(
        "greenroom_origin_errors",
        SYSTEM,
        "Origin errors above a limit",
        "Too large a part of the requests of one minute could not be handed to the origin, or no"
        " longer so. Needs 20 requests a minute.",
        "{percent} % of {requests} requests to the origin failed within a minute, more than"
        " {limit} %.",
        "No more than {limit} % of the requests to the origin fail.",
        fields={
            "percent": "part that failed",
            "requests": "requests of the minute",
            "limit": "the limit in percent",
        },
        filters={"limit": _bound("limit in percent", 5, 1, 100)},
        example={"percent": 37, "requests": 800, "limit": 5},
        example_subject="greenroom-1",
    ),
    AlertType(
        "greenroom_admissions_stopped",
        SYSTEM,
        "Admissions stopped",
        "A waiting room cannot write down whom it lets in (disk full, Redis not reachable), or"
        " follows an origin that is too slow, so it lets no one in; or it lets visitors in again.",
        "Waiting room {subject} lets no one in: {reason}.",
        "Waiting room {subject} lets visitors in again.",
        fields={**_ROOM_FIELDS, "reason": "what is in the way"},
        filters=_BY_ROOM,
        example={**_ROOM_EXAMPLE, "reason": "the ledger cannot be written"},
    ),
    AlertType(
        "greenroom_capacity_unmeasured",
        SYSTEM,
        "Origin not measured",
        "The limit of a waiting room follows its origin, and nothing has been measured for half a"
        " minute, because a process is silent or too busy; or it is measured again. The limit"
        " stays where it was meanwhile.",
        "The origin of waiting room {subject} is not measured; the limit stays where it was.",
        "The origin of waiting room {subject} is measured again.",
        fields=_ROOM_FIELDS,
        filters=_BY_ROOM,
        example=_ROOM_EXAMPLE,
    ),
    AlertType(
        "greenroom_data_center_cut_off",
        SYSTEM,
        "Data center cut off",
        "A data center has not reached the coordinator for some seconds, or reaches it again.",
        "Data center {subject} has not reached the coordinator for {seconds:second}.",
        "Data center {subject} reaches the coordinator again.",
        fields={"data_center": "name of the data center", "seconds": "for how long"},
        filters=_BY_DATA_CENTER,
        example={"data_center": "fra", "seconds": 4},
        example_subject="fra",
    ),
    AlertType(
        "greenroom_data_center_silent",
        SYSTEM,
        "Data center silent",
        "The coordinator has not heard from a data center for 15 seconds, or hears from it again."
        " Its capacity is out of use meanwhile; an operator who knows that nothing runs there can"
        " give it up.",
        "Data center {subject} has been silent since {since} and holds {held:unit} of capacity. If"
        " nothing runs there any more, give it up on the page “Processes and data centers”.",
        "Data center {subject} is heard again.",
        fields={
            "data_center": "name of the data center",
            "since": "when it was heard last",
            "held": "units of capacity that others would get, in all rooms",
        },
        filters=_BY_DATA_CENTER,
        example={"data_center": "fra", "since": "2030-11-29T09:00:00Z", "held": 420},
        example_subject="fra",
    ),
    AlertType(
        "greenroom_config_refused",
        SYSTEM,
        "Configuration refused",
        "A changed configuration file or a revision of the store, or a room, zone, list or the like"
        " in it, cannot be used; or it has been corrected.",
        "The configuration cannot be used, and the last good one stays, or only a part of it runs:"
        " {problems}.",
        "The configuration can be used again.",
        fields={"source": "file or store", "problems": "what is wrong with it"},
        filters={},
        example={"source": "file", "problems": "line 4: rooms[0].host: is required"},
        example_subject="file",
    ),
    AlertType(
        "greenroom_certificate_expiring",
        SYSTEM,
        "Certificate near its end",
        "The certificate that visitors see ends within a number of days, or has been renewed.",
        "The certificate for {names} ends at {not_after}, in {days:day}.",
        "The certificate for {names} has been renewed.",
        fields={
            "names": "host names of the certificate",
            "not_after": "when it ends",
            "days": "whole days until then",
            "limit": "the limit in days",
        },
        filters={"limit": _bound("limit in days", 14, 1, 365)},
        example={
            "names": "shop.example.com",
            "not_after": "2030-12-01T00:00:00Z",
            "days": 2,
            "limit": 14,
        },
        example_subject="shop.example.com",
        severity="warning",
    ),
)

ALERTS: Mapping[str, AlertType] = {row.type: row for row in _ROWS}


def make(
    type: str,
    state: AlertState,
    time_ms: int,
    correlation_id: str,
    data: Mapping[str, Any],
    *,
    subject_id: str = "",
    subject_name: str = "",
    zone_id: str = "",
) -> Alert:
    """Raises KeyError for an unknown type, and when `data` does not have exactly the row's
    fields.
    """
    row = ALERTS[type]
    differing = set(row.fields) ^ set(data)
    if differing:
        raise KeyError(
            f"{type} has the fields {', '.join(row.fields)}; wrong: {', '.join(sorted(differing))}"
        )
    template = row.end_text if state == "end" else row.text
    return Alert(
        type=type,
        state=state,
        time_ms=time_ms,
        correlation_id=correlation_id,
        text=template.format_map(
            {
                **{
                    name: _Counted(one) if isinstance(one, int) else one
                    for name, one in data.items()
                },
                "subject": subject_name or subject_id,
            }
        )[:TEXT_MAX],
        zone_id=zone_id,
        subject_id=subject_id,
        subject_name=subject_name,
        data=dict(data),
    )


def example(row: AlertType, time_ms: int) -> Alert:
    state: AlertState = "start" if row.paired else "none"
    return make(
        row.type,
        state,
        time_ms,
        f"example-{row.type}",
        row.example,
        subject_id="0" * 32,
        subject_name=row.example_subject,
    )
