"""The OpenAPI document, from route parameters and the schemas of bodies and responses."""

import inspect
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Json
from greenroom.web.dependencies import permission_of
from greenroom.web.openapi import MESSAGES
from greenroom.web.refusals import Code
from greenroom.web.routing import ApiRoute, Router

_SUFFIXES = {"": "answer", "Create": "whole", "Edit": "edit"}
"""Create (POST, PUT) or Edit (PATCH) may follow the name of an ApiSchema."""
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


def _components(routers: Iterable[Router]) -> dict[str, Json]:
    found: dict[str, Json] = {
        "Failure": _ERROR,
        "PageInfo": _INFO,
        "BatchInfo": _BATCH,
        "CursorInfo": _CURSORS,
        "Id": _ID,
    }
    for router in routers:
        for name, schema in router.schemas.items():
            if isinstance(schema, ApiSchema):
                found |= {f"{name}{end}": schema.schema(what) for end, what in _SUFFIXES.items()}
            else:
                found[name] = schema
    return found


def document(routers: Sequence[Router], prefix: str) -> Json:
    paths: dict[str, Json] = {}
    for route in (route for router in routers for route in router.routes):
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
    components = _components(routers)
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
