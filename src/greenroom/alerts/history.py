"""The history of notifications: one row for each message that was delivered or given up."""

from greenroom.alerts.rules.outbox import Dispatch
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.time_format import milliseconds
from greenroom.web.time_format import moment as written

_TEXT = Shown({"type": "string"})

DISPATCH = ApiSchema(
    (
        computed("id", "opaque identifier", _TEXT),
        computed("name", "name of the policy", _TEXT),
        computed("description", "description of the policy", _TEXT),
        computed("alert_body", "the text that was sent", _TEXT),
        computed("alert_type", "type of the alert", _TEXT),
        computed(
            "mechanism", "e-mail address, or id of the webhook or of the PagerDuty service", _TEXT
        ),
        computed(
            "mechanism_type",
            "what it was sent by",
            Shown({"type": "string", "enum": ["email", "pagerduty", "webhook"]}),
        ),
        computed("policy_id", "id of the policy", _TEXT),
        computed(
            "sent",
            "when it was delivered, or given up",
            Shown({"type": "string", "format": "date-time"}),
        ),
        computed(
            "delivered",
            "whether the destination took it",
            Shown({"type": "boolean"}),
            extension=True,
        ),
        computed(
            "problem", "why it was given up; empty when it was delivered", _TEXT, extension=True
        ),
        computed(
            "attempts",
            "how often it was tried",
            Shown({"type": "integer", "minimum": 0}),
            extension=True,
        ),
        computed("alert_correlation_id", "the incident it belongs to", _TEXT, extension=True),
    )
)


def show(entry: Dispatch) -> Json:
    names = (
        "id",
        "name",
        "description",
        "alert_body",
        "alert_type",
        "mechanism",
        "mechanism_type",
        "policy_id",
        "problem",
        "attempts",
    )
    values = {name: getattr(entry, name) for name in names}
    more = {
        "sent": written(entry.sent_ms),
        "delivered": not entry.problem,
        "alert_correlation_id": entry.correlation_id,
    }
    return DISPATCH.show(values | more)


def bound_ms(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = milliseconds(text.replace(" ", "+"))  # a plus that was not escaped
    if found is None:
        raise Refused(
            ApiFault(
                Code.BAD_QUERY,
                f"{name}: must be a time such as 2030-01-01T00:00:00Z, not {text!r:.60}",
            )
        )
    return found
