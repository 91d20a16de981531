"""Forward-auth: the proxy asks with a GET; method, scheme, host and URI of the visitor are in
X-Forwarded-* (Traefik, Caddy).
"""

from greenroom.proxies.dialect import Dialect, from_headers

METHOD, URI, HOST = b"x-forwarded-method", b"x-forwarded-uri", b"x-forwarded-host"

FORWARD_AUTH = Dialect(
    "forward-auth",
    "/forward-auth",
    "Traefik forwardAuth, Caddy",
    from_headers(METHOD, URI, HOST),
    frozenset({METHOD, URI, HOST, b"host"}),
    target_header=URI,
)
