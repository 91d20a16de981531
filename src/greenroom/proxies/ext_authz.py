"""Envoy's HTTP ext_authz: the visitor's target follows a prefix."""

from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import Asked, Dialect
from greenroom.request.canonical import Refusal

PATH = "/ext-authz"


def _read(question: Arrival) -> Asked | Refusal:
    host = question.header(b"host") or b""
    return Asked(question.method.encode(), question.target[len(PATH) :], host)


EXT_AUTHZ = Dialect(
    "ext_authz",
    PATH,
    "Envoy, Istio (HTTP ext_authz)",
    _read,
    frozenset({b"x-envoy-internal", b"x-envoy-expected-rq-timeout-ms", b"host"}),
    status_for=(
        (range(200, 300), 429),
        (range(500, 600), 429),
    ),  # Envoy takes 5xx for a broken service and drops the page
    removes=b"x-envoy-auth-headers-to-remove",
    whole_path=True,
)
