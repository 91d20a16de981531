"""Notifications: policies, destinations, silences, and what was sent."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.responses import Response

from greenroom.alerts import (
    destinations as alert_destinations,
)
from greenroom.alerts import (
    history as alert_history,
)
from greenroom.alerts import (
    policies as alert_policies,
)
from greenroom.alerts import (
    silences,
)
from greenroom.alerts.rules.channels import CHANNELS
from greenroom.alerts.rules.matching import destinations
from greenroom.alerts.rules.outbox import HISTORY_KEPT_MS
from greenroom.alerts.view import NOTIFICATION_VIEW, NotificationView
from greenroom.model.account import Role
from greenroom.model.alert_types import ALERTS
from greenroom.model.configuration import Entry
from greenroom.model.fields import form_fields
from greenroom.model.notification import AlertPolicy
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ChangeContext, ConfigChange, opaque_id
from greenroom.web.pages.forms import Faults, FieldView, field_view, several, unchanged_since
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, Threads, action, view
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.time_format import milliseconds, plain_moment

POLICY_PATH = "/notifications/policies/{policy_id}"
PER_PAGE = 100
SILENCE_HOURS = (1, 4, 12, 24, 72)
FORM = form_fields(AlertPolicy, "alert", "note")
FILTERS = {
    name: found.label or name.replace("_", " ").capitalize()
    for row in ALERTS.values()
    for name, found in row.filters.items()
}


class FilterChoice(NamedTuple):
    """`options`: (value, text, chosen); empty for a text field."""

    name: str
    label: str
    options: Sequence[tuple[str, str, bool]]
    text: str
    told: Sequence[str]


def table(page: PageRequest) -> Response:
    return _shown(page)


def history(page: PageRequest) -> Response:
    number = page.query("page", "1")
    at = int(number) if number.isascii() and number.isdigit() and 0 < len(number) < 6 else 1
    about = page.query("about")
    entry = page.known.health_checks.get(about) or page.known.rooms.get(about)
    subject = f"{entry.parent}/{entry.id}" if entry else about
    sent, total = _view(page).history(
        page.now_ms - HISTORY_KEPT_MS, None, (max(1, at) - 1) * PER_PAGE, PER_PAGE, subject
    )
    rows = [alert_history.show(entry) for entry in sent]
    names = _names(page)
    return page.render(
        "notification_history.html",
        rows=rows,
        names=names,
        alerts=ALERTS,
        about=about,
        subjects=[
            (FILTERS[name], _named(page, name)) for name in ("health_check_id", "waiting_room_id")
        ],
        at=max(1, at),
        pages=max(1, -(-total // PER_PAGE)),
    )


def new_policy(page: PageRequest) -> Response:
    """`check` prefills a policy for one health check."""
    values: Json = {"enabled": True, "alert_type": page.query("type") or next(iter(ALERTS))}
    check = page.known.health_checks.get(page.query("check"))
    if check is not None:
        values |= {
            "alert_type": "health_check_status_notification",
            "name": f"{check.record.name} is unhealthy",
            "filters": {"health_check_id": [check.id]},
        }
    return _policy_form(page, values, Faults())


def create_policy(page: PageRequest) -> Response:
    return _saved(page, alert_policies.create)


def edit_policy(page: PageRequest) -> Response:
    entry = alert_policies.policy_of(page.known, page.path("policy_id"))
    return _policy_form(page, alert_policies.show(entry), Faults(), entry)


def save_policy(page: PageRequest) -> Response:
    entry = alert_policies.policy_of(page.known, page.path("policy_id"))

    def make(document: Json) -> ConfigChange:
        plan = alert_policies.change(entry.id, document)
        return unchanged_since("alert_policy", entry.id, page.field("revision"), plan)

    return _saved(page, make, entry)


def policy_step(page: PageRequest) -> Response:
    entry = alert_policies.policy_of(page.known, page.path("policy_id"))
    policy_id = entry.id
    if page.field("step") == "test":
        if not destinations(entry.record):
            return _shown(page, ["This policy has no destination."])
        at = ChangeContext(page.now_ms, opaque_id)
        view = _view(page)
        sent = alert_policies.send_test(page.known, policy_id, view, at)
        names = _names(page)
        problems = [
            f"Test of {names.get(one, one)}: {problem}." if one else f"Test: {problem}."
            for one, problem in view.test_problems(sent)
        ]
        if problems:
            return _shown(page, problems)
        return page.redirect("/notifications", notice="tested")
    page.change(alert_policies.delete(policy_id))
    return page.redirect("/notifications", notice="removed")


def add_webhook(page: PageRequest) -> Response:
    document: Json = {"name": page.field("name"), "url": page.field("url").strip()}
    if page.field("secret"):
        document["secret"] = page.field("secret")
    if page.field("channel"):
        document["greenroom"] = {"channel": page.field("channel")}
    try:
        _, problem = alert_destinations.keep(
            page.config, page.person.author, _view(page), None, document
        )
    except Refused as refused:
        return _shown(page, status=refused.status, hook=Faults(refused.faults))
    return page.redirect("/notifications", notice="untested" if problem else "created")


def add_pagerduty(page: PageRequest) -> Response:
    document = {"name": page.field("name"), "routing_key": page.field("routing_key").strip()}
    return _done(page, alert_destinations.create_service(document), "created")


def remove_webhook(page: PageRequest) -> Response:
    return _done(page, alert_destinations.delete(page.path("webhook_id")), "removed")


def remove_pagerduty(page: PageRequest) -> Response:
    return _done(page, alert_destinations.delete_services(page.path("service_id")), "removed")


def add_silence(page: PageRequest) -> Response:
    hours = page.field("hours")
    lasts = int(hours) if hours in map(str, SILENCE_HOURS) else SILENCE_HOURS[0]
    document = {
        "policy_id": page.field("policy"),
        "end_time": plain_moment(page.now_ms + lasts * 3_600_000),
    }
    return _done(page, silences.put_all([document], change=False), "silent")


def remove_silence(page: PageRequest) -> Response:
    return _done(page, silences.delete(page.path("silence_id")), "removed")


def _view(page: PageRequest) -> NotificationView:
    return page.part(NOTIFICATION_VIEW) or NotificationView()


def _names(page: PageRequest) -> dict[str, str]:
    return {
        entry.id: entry.record.name
        for index in (page.known.webhooks, page.known.pagerduty_services)
        for entry in index.values()
    }


def _done(page: PageRequest, plan: ConfigChange, notice: str) -> Response:
    try:
        page.change(plan)
    except Refused as refused:
        return _shown(page, [fault.message for fault in refused.faults], refused.status)
    return page.redirect("/notifications", notice=notice)


def _shown(
    page: PageRequest,
    problems: Sequence[str] = (),
    status: int = 200,
    hook: Faults | None = None,
) -> Response:
    """`hook`: the faults of a new webhook, whose form keeps what was sent."""
    running, now_ms = _view(page), page.now_ms
    states = running.states()
    quiet = [silences.show(entry) for entry in page.known.silences.values()]
    return page.render(
        "notifications.html",
        status,
        policies=[
            (entry, alert_policies.show(entry)) for entry in page.known.alert_policies.values()
        ],
        alerts=ALERTS,
        webhooks=[alert_destinations.show(entry, states) for entry in page.known.webhooks.values()],
        services=alert_destinations.services(page.known),
        silences=[one for one in quiet if (milliseconds(one["end_time"]) or 0) > now_ms],
        waiting=running.waiting(),
        mail_ready=running.mail_ready,
        running=page.part(NOTIFICATION_VIEW) is not None,
        names=_names(page),
        channels=[(name, row.published) for name, row in CHANNELS.items()],
        hours=SILENCE_HOURS,
        generated=secrets.token_urlsafe(24),
        problems=[*problems, *_general(hook)],
        hook_problems=hook.of if hook else {},
        refused=hook is not None,
        nowhere={
            entry.id
            for entry in page.known.alert_policies.values()
            if not _reaches(page, alert_policies.show(entry)["mechanisms"])
        },
    )


def _policy(page: PageRequest) -> Json:
    listed = {
        "email": several(page.field("emails")),
        "webhooks": page.form.get("webhook", ()),
        "pagerduty": page.form.get("pagerduty", ()),
    }
    return {
        "name": page.field("name"),
        "description": page.field("description"),
        "enabled": "enabled" in page.form,
        "alert_type": page.field("alert_type"),
        "alert_interval": page.field("alert_interval").strip(),
        "mechanisms": {
            name: [{"id": value} for value in values] for name, values in listed.items() if values
        },
        "filters": _filters(page),
    }


def _filters(page: PageRequest) -> Json:
    row = ALERTS.get(page.field("alert_type"))
    found = {}
    for name in row.filters if row else ():
        sent = page.form.get(f"filter-{name}", ())
        # text fields take several values between commas; ids, and the words of a choice, have none
        values = sent if _has_options(name) else [one for text in sent for one in text.split(",")]
        found[name] = [value.strip() for value in values if value.strip()]
    return {name: values for name, values in found.items() if values}


def _has_options(name: str) -> bool:
    return name in ("zones", "waiting_room_id", "health_check_id") or any(
        name in row.filters and row.filters[name].choices for row in ALERTS.values()
    )


def _filter_choice(page: PageRequest, name: str, chosen: Sequence[str]) -> FilterChoice:
    rows = [row for row in ALERTS.values() if name in row.filters]
    bound = any(row.filters[name].bound for row in rows)
    told = [
        f"{row.display_name}: {row.filters[name].help}" if bound else row.display_name
        for row in rows
    ]
    label = FILTERS[name]
    if not _has_options(name):
        return FilterChoice(name, label, (), ", ".join(chosen), told)
    offered = dict(_named(page, name)) or {
        one: one for row in rows for one in row.filters[name].choices
    }
    # rooms may be named in a filter too; what is not there any more stays until it is taken off
    options = [(value, text, value in chosen or text in chosen) for value, text in offered.items()]
    known = {*offered, *offered.values()}
    gone = [
        (value, f"{value} (not there any more)", True) for value in chosen if value not in known
    ]
    return FilterChoice(name, label, [*options, *gone], "", told)


def _named(page: PageRequest, name: str) -> Iterable[tuple[str, str]]:
    indexes: Mapping[str, Any] = {
        "zones": page.known.zones,
        "waiting_room_id": page.known.rooms,
        "health_check_id": page.known.health_checks,
    }
    entries = indexes[name].values() if name in indexes else ()
    return sorted(((one.id, one.record.name) for one in entries), key=lambda pair: pair[1])


def _general(faults: Faults | None) -> list[str]:
    shown = ("name", "url", "secret", "channel")
    return (
        [text for name, texts in faults.of.items() if name not in shown for text in texts]
        if faults
        else []
    )


def _reaches(page: PageRequest, mechanisms: Mapping[str, Any]) -> bool:
    """False as well when the destination was removed."""
    known: Mapping[str, Any] = {
        "webhooks": page.known.webhooks,
        "pagerduty": page.known.pagerduty_services,
    }
    return any(
        kind not in known or item["id"] in known[kind]
        for kind, items in mechanisms.items()
        for item in items
    )


def _with_destination(
    page: PageRequest, document: Json, make: Callable[[Json], ConfigChange]
) -> Json:
    """Adds the new destination of the form. Refuses an enabled policy without any."""
    address = page.field("new_url").strip()
    mechanisms = document["mechanisms"]
    if not address:
        if document["enabled"] and not _reaches(page, mechanisms):
            page.config.trial(make(document))  # every other fault comes first
            raise Refused(
                ApiFault(
                    Code.INVALID,
                    "mechanisms: choose at least one destination, or add one: nobody would be told",
                    "/mechanisms",
                )
            )
        return document
    hooks = list(mechanisms.get("webhooks", ()))

    def with_hook(id: str) -> Json:
        return {**document, "mechanisms": {**mechanisms, "webhooks": [*hooks, {"id": id}]}}

    page.config.trial(make(with_hook(opaque_id())))  # a refused policy adds nothing
    try:
        name = page.field("new_name").strip() or urlsplit(address).hostname or address
        added, _ = alert_destinations.keep(
            page.config, page.person.author, _view(page), None, {"name": name, "url": address}
        )
    except ValueError:
        raise Refused(ApiFault(Code.INVALID, "new_url: not a web address", "/new_url")) from None
    except Refused as refused:
        raise Refused(
            *(
                fault._replace(
                    pointer=f"/new_{field}", message=fault.message.removeprefix(f"{field}: ")
                )
                if (field := fault.pointer.strip("/")) in ("name", "url")
                else fault
                for fault in refused.faults
            ),
            status=refused.status,
        ) from refused
    return with_hook(added["id"])


def _saved(
    page: PageRequest,
    make: Callable[[Json], ConfigChange],
    entry: Entry[AlertPolicy] | None = None,
) -> Response:
    try:
        page.change(make(_with_destination(page, _policy(page), make)))
    except Refused as refused:
        return _policy_form(page, _policy(page), Faults(refused.faults), entry, refused.status)
    return page.redirect("/notifications", notice="saved" if entry else "created")


def _policy_form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    entry: Entry[AlertPolicy] | None = None,
    status: int = 200,
) -> Response:
    mechanisms = values.get("mechanisms") or {}
    words = {row.type: row.display_name for row in ALERTS.values()}
    fields = [_policy_field(name, values, faults, words) for name in FORM]
    chosen = {
        kind: [item["id"] for item in mechanisms.get(kind, ())]
        for kind in ("email", "webhooks", "pagerduty")
    }
    filters = values.get("filters") or {}
    return page.render(
        "notification_policy.html",
        status,
        entry=entry,
        fields=fields,
        chosen=chosen,
        webhooks=list(page.known.webhooks.values()),
        services=list(page.known.pagerduty_services.values()),
        filters=[_filter_choice(page, name, filters.get(name, ())) for name in FILTERS],
        filtered=bool(filters),
        new_problems={name: faults.take(f"new_{name}") for name in ("name", "url")},
        mail_ready=_view(page).mail_ready,
        mechanism_problems=faults.take("mechanisms"),
        filter_problems=faults.take("filters"),
        problems=faults.general,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
    )


def _policy_field(
    name: str, values: Mapping[str, Any], faults: Faults, words: Mapping[str, str]
) -> FieldView:
    made = field_view(
        alert_policies.POLICY,
        name,
        "" if values.get(name) is None else values[name],
        faults,
        words=words,
    )
    if name != "alert_type":
        return made
    offered = tuple(
        choice for choice in made.choices if choice[0] in ALERTS or choice[0] == values.get(name)
    )
    return replace(made, choices=offered)


def find(page: PageRequest, text: str) -> Iterator[SearchResult]:
    if page.person.zone_ids:
        return
    may = page.person.may(Role.OPERATOR)
    for policy in page.known.alert_policies.values():
        if text in f"{policy.record.name} {policy.record.description}".lower():
            path = f"/notifications/policies/{policy.id}/edit" if may else "/notifications"
            yield SearchResult("Notification policy", policy.record.name, path)
    for webhook in page.known.webhooks.values():
        if text in webhook.record.name.lower():
            yield SearchResult("Webhook", webhook.record.name, "/notifications")


PAGES = (
    view("/notifications", table),
    view("/notifications/history", history),
    view("/notifications/policies/new", new_policy, Role.OPERATOR),
    action("/notifications/policies/new", create_policy, threads=Threads.OUTBOUND),
    view(f"{POLICY_PATH}/edit", edit_policy, Role.OPERATOR),
    action(f"{POLICY_PATH}/edit", save_policy, threads=Threads.OUTBOUND),
    action(f"{POLICY_PATH}/step", policy_step, threads=Threads.OUTBOUND),
    action("/notifications/webhooks", add_webhook, threads=Threads.OUTBOUND),
    action("/notifications/webhooks/{webhook_id}/remove", remove_webhook),
    action("/notifications/pagerduty", add_pagerduty),
    action("/notifications/pagerduty/{service_id}/remove", remove_pagerduty),
    action("/notifications/silences", add_silence),
    action("/notifications/silences/{silence_id}/remove", remove_silence),
)
