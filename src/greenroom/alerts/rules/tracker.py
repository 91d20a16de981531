"""Turns conditions into alerts. Open incidents are taken over after a restart, so that no start is
repeated and no end is lost.
"""

from collections.abc import Callable, Iterable

from greenroom.alerts.rules.conditions import AFTER_MS, SOURCES, AlertCondition
from greenroom.model.alert import Alert
from greenroom.model.alert_types import make

REMEMBERED_MAX = 10_000


class Tracker:
    def __init__(self) -> None:
        self.open: dict[str, Alert] = {}
        """By `incident`."""
        self._since: dict[str, int] = {}
        self._clear: dict[str, int] = {}
        self._told: dict[str, None] = {}

    def adopt(self, found: Iterable[Alert]) -> None:
        for alert in found:
            if alert.correlation_id.startswith(SOURCES):
                self.open.setdefault(_incident(alert), alert)

    def without_open(self, alerts: Iterable[Alert], known: Iterable[Alert]) -> list[Alert]:
        going_on = {
            _incident(alert): alert for alert in known if alert.correlation_id.startswith(SOURCES)
        }
        left = []
        for alert in alerts:
            other = going_on.get(_incident(alert)) if alert.state == "start" else None
            if other is None or other.correlation_id == alert.correlation_id:
                left.append(alert)
            elif _incident(alert) in self.open:
                self.open[_incident(alert)] = other
        return left

    def step(
        self, found: Iterable[AlertCondition], speaks_for: Callable[[str], bool], now_ms: int
    ) -> list[Alert]:
        """Ends only the incidents that this process `speaks_for`."""
        holding = {condition.incident: condition for condition in found}
        alerts = [
            alert for condition in holding.values() for alert in self._held(condition, now_ms)
        ]
        self._since = {
            incident: since_ms for incident, since_ms in self._since.items() if incident in holding
        }
        for incident in [incident for incident in self.open if incident not in holding]:
            if speaks_for(incident):
                alerts += self._cleared(incident, now_ms)
            else:
                del self.open[incident]  # another process speaks for it now
                self._clear.pop(incident, None)
        return alerts

    def _held(self, condition: AlertCondition, now_ms: int) -> list[Alert]:
        incident = condition.incident
        if condition.alone:
            return self._alone(condition, now_ms)
        self._clear.pop(incident, None)
        since_ms = self._since.setdefault(incident, now_ms)
        if incident in self.open or now_ms - since_ms < _after_ms(condition.type)[0]:
            return []
        alert = _alert(
            condition,
            "start",
            now_ms,
            f"{incident}{since_ms}" if incident.endswith(":") else incident,
        )
        self.open[incident] = alert
        return [alert]

    def _alone(self, condition: AlertCondition, now_ms: int) -> list[Alert]:
        if condition.incident in self._told:
            return []
        self._told[condition.incident] = None
        if len(self._told) > REMEMBERED_MAX:
            del self._told[next(iter(self._told))]
        return [_alert(condition, "none", now_ms, condition.incident)]

    def _cleared(self, incident: str, now_ms: int) -> list[Alert]:
        since_ms = self._clear.setdefault(incident, now_ms)
        if now_ms - since_ms < _after_ms(self.open[incident].type)[1]:
            return []
        start = self.open.pop(incident)
        del self._clear[incident]
        return [
            make(
                start.type,
                "end",
                now_ms,
                start.correlation_id,
                start.data,
                subject_id=start.subject_id,
                subject_name=start.subject_name,
                zone_id=start.zone_id,
            )
        ]


def _after_ms(type: str) -> tuple[int, int]:
    return AFTER_MS.get(type, (0, 0))


def _incident(alert: Alert) -> str:
    if alert.correlation_id.startswith(("event:", "certificate:")):
        return alert.correlation_id
    return alert.correlation_id.rpartition(":")[0] + ":"


def _alert(condition: AlertCondition, state: str, now_ms: int, correlation_id: str) -> Alert:
    return make(
        condition.type,
        "none" if state == "none" else "start",
        now_ms,
        correlation_id,
        condition.data,
        subject_id=condition.subject_id[:200],
        subject_name=condition.subject_name[:200],
        zone_id=condition.zone_id,
    )
