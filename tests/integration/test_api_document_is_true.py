"""schemathesis asks the API everything that its OpenAPI document allows, and what it forbids, and
finds the document true.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import schemathesis
from api_in_process import ApiInProcess, api_in
from schemathesis import engine, hooks
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events

from greenroom.api.app import PREFIX
from greenroom.api.management import ROUTERS
from greenroom.model.change import Remove, name_of
from greenroom.model.configuration import KIND_OF, Configuration, Entry
from greenroom.model.zone import ACCOUNT_ID
from greenroom.web.authenticator import FAILURES_MS

EXAMPLES = 3
"""Random requests for each of the forty operations, besides those made from every bound and every
kind of wrong value.
"""

BEYOND_A_SCHEMA = ["2xx", "400", "404"]
"""A body that fits its schema may still be refused: a host outside the zone, a name that is taken,
times in the wrong order.
"""

CONFIG = {
    "checks": {"positive_data_acceptance": {"expected-statuses": BEYOND_A_SCHEMA}},
    "generation": {
        "max-examples": EXAMPLES,
        "deterministic": True,
        "allow-x00": False,
        "database": "none",
    },
    "phases": {"stateful": {"enabled": False}},
}
TAGS = sorted({tag for router in ROUTERS for tag in router.tags})
TWICE = ("smart shield health checks",)
"""The same operations under a second path."""

LIMITS = {"new_users_per_minute": 200, "total_active_users": 200}

FRAMES = r"^(?:https://[a-z]+)?$"
"""Some of the values of `frame_ancestors`: drawing from its own pattern takes half of all the time."""


class Kept:
    """One of everything, made again when a request took it away."""

    def __init__(self, api: ApiInProcess) -> None:
        self._api = api
        self._operation = ""

    def ids(self, path: str) -> dict[str, str]:
        """By the names that paths give them. What is below a room or a zone is there for paths that are
        about it; previews and agents are made again each time.
        """
        known = self._api.store.read()
        return {
            "account_id": ACCOUNT_ID,
            "data_center": "nyc",
            "token_id": "0" * 32,
            "agent_name": self._agent() if "{agent_name}" in path else "",
            **(self._in_a_zone(known, path) if path.startswith("/zones") else {}),
            **(self._lists(known) if "/lists" in path else {}),
            **(self._alerting(known) if "/alerting" in path else {}),
            **(self._told(known) if "/status_pages" in path or "/incident_notes" in path else {}),
        }

    def _in_a_zone(self, known: Configuration, path: str) -> dict[str, str]:
        zone = {"name": "shop.example.com", "greenroom": {"limit_floor": 1}}
        zone_id = self._only(known.zones.values(), "/zones", zone)
        rooms = f"/zones/{zone_id}/waiting_rooms"
        room_id = self._only(
            known.rooms.of(zone_id),
            rooms,
            {"name": "kept", "host": "kept.shop.example.com", **LIMITS},
        )
        return {
            "zone_id": zone_id,
            "waiting_room_id": room_id,
            "event_id": self._event(known, room_id, rooms) if "/events" in path else "",
            "rule_id": self._rule(known, room_id, rooms) if "/rules" in path else "",
            "healthcheck_id": self._only(
                known.health_checks.of(zone_id),
                f"/zones/{zone_id}/healthchecks",
                {"name": "kept", "address": "origin.shop.example.com"},
            )
            if "healthchecks" in path
            else "",
            "preview_id": self._preview(zone_id) if "{preview_id}" in path else "",
            "operation": self._hold(f"{rooms}/{room_id}") if "{operation}" in path else "",
        }

    def _event(self, known: Configuration, room_id: str, rooms: str) -> str:
        event = {
            "name": "kept",
            "event_start_time": "2040-01-01T00:00:00Z",
            "event_end_time": "2040-01-02T00:00:00Z",
        }
        return self._only(known.events.of(room_id), f"{rooms}/{room_id}/events", event)

    def _rule(self, known: Configuration, room_id: str, rooms: str) -> str:
        if room_id in known.rules and (rules := known.rules[room_id].record.rules):
            return rules[0].id
        rule = {"action": "bypass_waiting_room", "expression": "ssl"}
        return str(self._api.make(f"{rooms}/{room_id}/rules", rule)[0]["id"])

    def _lists(self, known: Configuration) -> dict[str, str]:
        lists = f"/accounts/{ACCOUNT_ID}/rules/lists"
        list_id = self._only(known.lists.values(), lists, {"name": "kept", "kind": "ip"})
        if not known.list_items.of(list_id):
            self._operation = self._api.make(f"{lists}/{list_id}/items", [{"ip": "10.0.0.1"}])[
                "operation_id"
            ]
        return {
            "list_id": list_id,
            "item_id": self._api.store.read().list_items.of(list_id)[0].id,
            "operation_id": self._operation,
        }

    def _alerting(self, known: Configuration) -> dict[str, str]:
        base = f"/accounts/{ACCOUNT_ID}/alerting/v3"
        policy = {
            "name": "kept",
            "alert_type": "greenroom_event",
            "mechanisms": {"email": [{"id": "a@example.com"}]},
        }
        policy_id = self._only(known.alert_policies.values(), f"{base}/policies", policy)
        self._remove([Remove("silence", entry.id) for entry in list(known.silences.values())[1:]])
        if not len(known.silences):
            assert self._api.ask("POST", f"{base}/silences", [{}]).status_code == 200
        return {
            "policy_id": policy_id,
            "webhook_id": self._only(
                known.webhooks.values(),
                f"{base}/destinations/webhooks",
                {"name": "kept", "url": "https://hooks.example.com/a"},
            ),
            "service_id": self._only(
                known.pagerduty_services.values(),
                f"{base}/destinations/pagerduty",
                {"name": "kept", "routing_key": "R0"},
            ),
            "silence_id": next(iter(self._api.store.read().silences)),
        }

    def _told(self, known: Configuration) -> dict[str, str]:
        return {
            "page_id": self._only(
                known.status_pages.values(),
                f"/accounts/{ACCOUNT_ID}/status_pages",
                {"title": "kept", "path": "/kept"},
            ),
            "note_id": next(iter(known.incident_notes), "")
            or self._make(f"/accounts/{ACCOUNT_ID}/incident_notes", {"text": "kept"}),
        }

    def _preview(self, zone_id: str) -> str:
        return self._make(
            f"/zones/{zone_id}/healthchecks/preview",
            {"name": "kept", "address": "origin.shop.example.com"},
        )

    def _hold(self, room: str) -> str:
        assert self._api.ask("PUT", f"{room}/operations/hold", {}).status_code == 200
        return "hold"

    def _agent(self) -> str:
        path = f"/accounts/{ACCOUNT_ID}/probe_agents/kept"
        reports = self._api.ask(
            "PUT",
            path,
            {"region": "WEU", "session": f"session-{self._api.clock.at_ms}", "number": 1},
        )
        assert reports.status_code == 200, reports.text
        self._api.clock.at_ms += FAILURES_MS  # the name is free for another session again
        return "kept"

    def _only(self, there: Iterable[Entry[Any]], path: str, document: Any) -> str:
        """The id of the one that is kept; the others go, so that there is room for what is asked
        next.
        """
        kept, others = "", []
        for entry in there:
            kind = KIND_OF[type(entry.record)]
            if name_of(kind, entry.record) == document.get("name", document.get("title")):
                kept = entry.id
            else:
                others.append(Remove(kind, entry.id))
        self._remove(others)
        return kept or self._make(path, document)

    def _remove(self, changes: list[Remove]) -> None:
        """Beside the API, which has its own tests: a quarter of all the time went there."""
        store = self._api.store
        if changes:
            store.write(
                changes,
                expected=store.read().revision,
                author="test",
                now_ms=self._api.clock.at_ms,
            )

    def _make(self, path: str, document: Any) -> str:
        return str(self._api.make(path, document)["id"])


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[ApiInProcess]:
    with api_in(tmp_path_factory.mktemp("document")) as api:
        yield api


async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


@pytest.fixture(scope="module")
def schema(api) -> Iterator[Any]:
    """The document as schemathesis reads it; its requests go to things that are there, now and then
    to what it made up.
    """
    config = SchemathesisConfig.from_dict(
        {**CONFIG, "headers": {"Authorization": f"Bearer {api.token}"}}
    )

    @schemathesis.hook
    def before_load_schema(context: Any, raw: dict[str, Any]) -> None:
        for name in ("Room", "RoomCreate", "RoomEdit"):
            extensions = raw["components"]["schemas"][name]["properties"]["greenroom"]
            extensions["properties"]["frame_ancestors"]["pattern"] = FRAMES

    schema = schemathesis.openapi.from_asgi(f"{PREFIX}/openapi.json", api.app, config=config)
    hooks.unregister(before_load_schema)
    kept, requests = Kept(api), itertools.count(1)

    @schemathesis.hook
    def before_call(context: Any, case: Any, **kwargs: Any) -> None:
        api.clock.at_ms += (
            FAILURES_MS  # wrong tokens are tried too, and must not have to wait for that
        )
        ids = kept.ids(case.operation.path)
        if next(requests) % 8:
            case.path_parameters = {
                name: ids.get(name, value) for name, value in (case.path_parameters or {}).items()
            }

    with pytest.MonkeyPatch.context() as patched:
        # Before each request, requests looks for proxies in the environment: a tenth of all the time.
        patched.setattr("requests.sessions.get_environ_proxies", lambda *_, **__: {})
        # The API's functions are at hand: a thread for each is a twelfth of all the time.
        patched.setattr("greenroom.web.routing.run_in_threadpool", at_once)
        yield schema
    hooks.unregister(before_call)


NEVER_DONE = {
    "DELETE /accounts/{account_id}/unusable_records/{kind}/{record_id}",
    "POST /zones/{zone_id}/waiting_rooms/{waiting_room_id}/capacity/figures",
}
"""No stored record is damaged here, and no random body has a histogram: other tests do both."""


@pytest.mark.parametrize(
    "tag", [pytest.param(tag, marks=pytest.mark.campaign) if tag in TWICE else tag for tag in TAGS]
)
def test_every_answer_is_as_the_document_says(schema, tag) -> None:
    schema = schema.include(tag=tag)
    operations = {operation.ok().label for operation in schema.get_all_operations()}
    wrong, asked, reached = [], 0, set()
    for event in engine.from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            wrong.append(f"{getattr(event, 'label', '')}: {getattr(event, 'value', event)}")
        if isinstance(event, events.ScenarioFinished):
            asked += len(event.recorder.interactions)
            answers = (found.response for found in event.recorder.interactions.values())
            reached |= (
                {event.label}
                if any(answer and answer.status_code == 200 for answer in answers)
                else set()
            )
            for case_id, checks in event.recorder.checks.items():
                case = event.recorder.cases[case_id].value
                wrong += [
                    f"{check.failure_info.failure}\n{case.as_curl_command()}"
                    for check in checks
                    if check.failure_info
                ]
    assert not wrong, "\n\n".join(dict.fromkeys(wrong))
    assert asked > 20 * len(operations)
    operations -= NEVER_DONE
    assert operations == reached, "never succeeded, so their answers were not compared"
