"""Explanations of a request: the question, and the interface that answers it."""

from typing import Any, Protocol

import msgspec

from greenroom.decision.explain import Explanation

URL_MAX = 16_384
HEADERS_MAX = 100
HEADER_MAX = 8_192
METHOD_MAX = 24
CLIENT_MAX = 64
CLIENT = "203.0.113.1"


class ExplainRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    client: str = CLIENT


def explanation_schemas(template: str) -> dict[str, Any]:
    """`template` locates them, with `{name}` in it."""
    _, components = msgspec.json.schema_components([Explanation], ref_template=template)
    return components


class Explains(Protocol):
    """Call it in the event loop."""

    def explain(self, asked: ExplainRequest) -> Explanation: ...


def as_plain(explanation: Explanation) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(explanation)
    return plain
