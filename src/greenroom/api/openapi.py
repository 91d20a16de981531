"""The OpenAPI document, from route parameters and the schemas of bodies and responses."""

import inspect
import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from greenroom.alerts.destinations import PAGERDUTY, WEBHOOK
from greenroom.alerts.history import DISPATCH
from greenroom.alerts.policies import POLICY
from greenroom.alerts.silences import SILENCE
from greenroom.configuration.audit import LOG
from greenroom.configuration.capacity_status import ROOM_CAPACITY
from greenroom.configuration.data_centers import DATA_CENTER
from greenroom.configuration.events import DETAILS, EVENT
from greenroom.configuration.explain_request import explanation_schemas
from greenroom.configuration.list_items import ITEM, ITEM_DELETION, OPERATION
from greenroom.configuration.lists import LIST
from greenroom.configuration.operations import ROOM_OPERATION
from greenroom.configuration.room_status import STATUS
from greenroom.configuration.rooms import ROOM
from greenroom.configuration.rules import POSITION, RULE
from greenroom.configuration.unusable import UNUSABLE
from greenroom.configuration.zones import SETTINGS, ZONE
from greenroom.health.checks import HEALTH_CHECK
from greenroom.health.history import CHECK_EVENT, FIGURES
from greenroom.health.probe_agents import AGENT, report_schemas
from greenroom.offers.changes import ENTRY as OFFER_LOG_ENTRY
from greenroom.offers.changes import OFFER
from greenroom.status_page.incident_notes import INCIDENT, NOTE
from greenroom.status_page.pages import PAGE
from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Json
from greenroom.web.dependencies import permission_of
from greenroom.web.openapi import MESSAGES
from greenroom.web.refusals import Code
from greenroom.web.routing import ApiRoute

FORMS: dict[str, ApiSchema] = {
    "Zone": ZONE,
    "Room": ROOM,
    "Settings": SETTINGS,
    "RoomOperation": ROOM_OPERATION,
    "Status": STATUS,
    "RoomCapacity": ROOM_CAPACITY,
    "Event": EVENT,
    "EventDetails": DETAILS,
    "Rule": RULE,
    "Offer": OFFER,
    "OfferLogEntry": OFFER_LOG_ENTRY,
    "HealthCheck": HEALTH_CHECK,
    "CheckEvent": CHECK_EVENT,
    "CheckFigures": FIGURES,
    "Agent": AGENT,
    "DataCenter": DATA_CENTER,
    "List": LIST,
    "ListItem": ITEM,
    "Operation": OPERATION,
    "Webhook": WEBHOOK,
    "PagerdutyService": PAGERDUTY,
    "Policy": POLICY,
    "Silence": SILENCE,
    "Dispatch": DISPATCH,
    "Incident": INCIDENT,
    "IncidentNote": NOTE,
    "StatusPage": PAGE,
    "AuditEntry": LOG,
    "Unusable": UNUSABLE,
}
"""Create (POST, PUT) or Edit (PATCH) may follow the name."""

_SUFFIXES = {"": "answer", "Create": "whole", "Edit": "edit"}
_INFO = {
    "type": "object",
    "properties": {
        name: {"type": "integer"}
        for name in ("page", "per_page", "count", "total_count", "total_pages")
    },
    "required": ["page", "per_page", "count", "total_count", "total_pages"],
}
_BATCH = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in ("page", "per_page", "count")},
    "required": ["page", "per_page", "count"],
}
_CURSORS = {
    "type": "object",
    "properties": {
        "cursors": {
            "type": "object",
            "properties": {"before": {"type": "string"}, "after": {"type": "string"}},
        }
    },
    "required": ["cursors"],
}
_ID = {
    "type": "object",
    "properties": {"id": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}
_ACCOUNT = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("id", "name", "type")},
        "settings": {"type": "object"},
    },
    "required": ["id", "name", "type", "settings"],
    "additionalProperties": False,
}
_VERIFIED_TOKEN = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["active"]},
        "expires_on": {"type": "string", "format": "date-time"},
    },
    "required": ["id", "status"],
    "additionalProperties": False,
}
_OPERATION_ID = {
    "type": "object",
    "properties": {"operation_id": {"type": "string"}},
    "required": ["operation_id"],
    "additionalProperties": False,
}
_AVAILABLE_ALERTS = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                **{name: {"type": "string"} for name in ("type", "display_name", "description")},
                "filter_options": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["type", "display_name", "description", "filter_options"],
        },
    },
}
_ELIGIBLE = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "eligible": {"type": "boolean"},
                "ready": {"type": "boolean"},
                "type": {"type": "string"},
            },
            "required": ["eligible", "ready", "type"],
        },
    },
}
_PREVIEW = {
    "type": "object",
    "properties": {"custom_html": {"type": "string"}},
    "required": ["custom_html"],
    "additionalProperties": False,
}
_PREVIEW_URL = {
    "type": "object",
    "properties": {"preview_url": {"type": "string", "format": "uri"}},
    "required": ["preview_url"],
}
_ERROR = {
    "type": "object",
    "properties": {
        "success": {"const": False},
        "errors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "code": {"type": "integer", "enum": [int(code) for code in Code]},
                    "message": {"type": "string"},
                    "source": {
                        "type": "object",
                        "properties": {"pointer": {"type": "string"}},
                        "required": ["pointer"],
                    },
                },
                "required": ["code", "message"],
            },
        },
        "messages": MESSAGES,
        "result": {"type": "null"},
    },
    "required": ["success", "errors", "messages", "result"],
}
SECURITY = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token created by `greenroom token create`.",
    },
    "email": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Auth-Email",
        "description": "Legacy: the e-mail address that the token was created for.",
    },
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Auth-Key",
        "description": "Legacy: the token.",
    },
}


def schemas() -> dict[str, Json]:
    found = {
        f"{name}{suffix}": form.schema(what)
        for name, form in FORMS.items()
        for suffix, what in _SUFFIXES.items()
    }
    found["RuleEdit"]["properties"]["position"] = POSITION
    return found | {
        "Failure": _ERROR,
        "PageInfo": _INFO,
        "BatchInfo": _BATCH,
        "CursorInfo": _CURSORS,
        "Id": _ID,
        "Account": _ACCOUNT,
        "VerifiedToken": _VERIFIED_TOKEN,
        "OperationId": _OPERATION_ID,
        "Preview": _PREVIEW,
        "PreviewUrl": _PREVIEW_URL,
        **explanation_schemas("#/components/schemas/{name}"),
        **report_schemas(),
        "ListItemDeletion": ITEM_DELETION,
        "AvailableAlerts": _AVAILABLE_ALERTS,
        "EligibleDestinations": _ELIGIBLE,
    }


def document(routes: Iterable[ApiRoute], prefix: str) -> Json:
    paths: dict[str, Json] = {}
    for route in routes:
        for method in route.methods or ():
            paths.setdefault(route.path, {})[method.lower()] = _operation(route, method)
    found: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "greenroom",
            "summary": (
                "The management API of greenroom, compatible with the API that Cloudflare published"
                " for Waiting Room."
            ),
            "description": (
                "No string may contain U+0000. Objects named `greenroom` hold fields that"
                " Cloudflare's API does not have."
            ),
            "version": version("greenroom"),
        },
        "servers": [{"url": prefix}],
        "paths": paths,
    }
    components = schemas()
    used = set(_references(found["paths"]))
    while more := {inner for name in used for inner in _references(components[name])} - used:
        used |= more
    found["components"] = {
        "schemas": {name: components[name] for name in components if name in used},
        "securitySchemes": SECURITY,
    }
    found["security"] = [{"token": []}, {"email": [], "key": []}]
    return found


def _operation(route: ApiRoute, method: str) -> Json:
    description = inspect.getdoc(route.function) or ""
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.param_convertors
    ]
    operation: Json = {
        "tags": list(route.tags),
        "summary": description.partition(".")[0],
        "description": description,
        "operationId": (
            re.sub(r"\W", "_", route.function.__name__ + route.path) + f"_{method.lower()}"
        ),
        "responses": route.responses,
        "x-greenroom-scope": permission_of(route).scope,
    }
    asked = [*in_path, *(query.described() for query in route.queries)]
    return (
        operation
        | ({"parameters": asked} if asked else {})
        | ({"requestBody": route.body} if route.body else {})
    )


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
