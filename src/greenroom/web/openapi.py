"""Keywords with which routes describe themselves for the OpenAPI document."""

from http import HTTPStatus
from typing import Any

from greenroom.web.api_shapes import Json
from greenroom.web.dependencies import May
from greenroom.web.envelope import JSON
from greenroom.web.refusals import CODES, Code

MESSAGES = {"type": "array", "items": {"type": "object"}}

_ALWAYS = (
    Code.INVALID,
    Code.NO_CREDENTIALS,
    Code.DENIED,
    Code.NO_OBJECT,
    Code.SLOW_DOWN,
    Code.UNEXPECTED,
    Code.UNAVAILABLE,
)
_ON_CHANGE = (Code.TOO_LARGE, Code.CHANGED_MEANWHILE)


def schema_of(name: str) -> Json:
    """`[Name]` is a list."""
    if name.startswith("["):
        return {"type": "array", "items": schema_of(name.strip("[]"))}
    return {"$ref": f"#/components/schemas/{name}"}


def documented(
    answer: str,
    *,
    may: str = "",
    body: str = "",
    info: str = "",
    change: bool = False,
    bodiless: bool = False,
) -> dict[str, Any]:
    """Names are schemas; `info` is Page or Cursor for lists. `answer` empty: no result. `bodiless`:
    the body is optional. `may`: for routes that ignore the caller.
    """
    codes = [*_ALWAYS, *(_ON_CHANGE if body or change else ())]
    statuses = sorted({CODES[code].status for code in codes})
    keywords: dict[str, Any] = {
        "guard": May(may) if may else None,
        "responses": {
            "200": {"description": "Done.", "content": {JSON: {"schema": _success(answer, info)}}}
        }
        | {
            str(status): {
                "description": HTTPStatus(status).phrase + ".",
                "content": {JSON: {"schema": schema_of("Failure")}},
            }
            for status in statuses
        },
    }
    if body:
        keywords["body"] = {
            "required": not bodiless,
            "content": {JSON: {"schema": schema_of(body)}},
        }
    return keywords


def _success(answer: str, info: str) -> Json:
    properties: Json = {
        "success": {"const": True},
        "errors": {**MESSAGES, "maxItems": 0},
        "messages": MESSAGES,
    }
    if answer:
        properties["result"] = schema_of(answer)
    if info:
        properties["result_info"] = schema_of(f"{info}Info")
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
