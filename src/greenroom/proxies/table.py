"""Every way of asking that greenroom understands over HTTP."""

from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import Asked, Dialect, from_headers
from greenroom.request.canonical import Refusal

_FORWARDED = (b"x-forwarded-method", b"x-forwarded-uri", b"x-forwarded-host")
_ORIGINAL = (b"x-original-method", b"x-original-uri", b"x-original-host")

# a GET with the visitor's method, scheme, host and URI in X-Forwarded-*
FORWARD_AUTH = Dialect(
    "forward-auth",
    "/forward-auth",
    "Traefik forwardAuth, Caddy",
    from_headers(*_FORWARDED),
    frozenset({*_FORWARDED, b"host"}),
    target_header=_FORWARDED[1],
)

# The answer is yes or no; a second request, which names the verdict, fetches the page. nginx
# passes on neither body nor most headers of a refused question (`VerdictStore`).
AUTH_REQUEST = Dialect(
    "auth_request",
    "/nginx/decide",
    "nginx auth_request",
    from_headers(*_ORIGINAL),
    frozenset({*_ORIGINAL, b"host"}),
    two_steps=True,
    target_header=_ORIGINAL[1],
)

NGINX_PAGE_PATH = "/nginx/page"

_EXT_AUTHZ_PATH = "/ext-authz"


def _behind_prefix(question: Arrival) -> Asked | Refusal:
    host = question.header(b"host") or b""
    return Asked(question.method.encode(), question.target[len(_EXT_AUTHZ_PATH) :], host)


EXT_AUTHZ = Dialect(
    "ext_authz",
    _EXT_AUTHZ_PATH,
    "Envoy, Istio (HTTP ext_authz)",
    _behind_prefix,
    frozenset({b"x-envoy-internal", b"x-envoy-expected-rq-timeout-ms", b"host"}),
    status_for=(
        (range(200, 300), 429),
        (range(500, 600), 429),
    ),  # Envoy takes 5xx for a broken service and drops the page
    removes=b"x-envoy-auth-headers-to-remove",
    whole_path=True,
)

DIALECTS: tuple[Dialect, ...] = (FORWARD_AUTH, AUTH_REQUEST, EXT_AUTHZ)

SPOE_PAGE_PATH = "/spoe/page"


_BY_TARGET = {dialect.path.encode(): dialect for dialect in DIALECTS}


def dialect_of(target: bytes) -> Dialect | None:
    known = _BY_TARGET.get(target)
    if known is not None:
        return known
    path = target.partition(b"?")[0].decode("latin-1")
    for dialect in DIALECTS:
        if path == dialect.path or (dialect.whole_path and path.startswith(dialect.path + "/")):
            return dialect
    return None
