"""Forward-auth (Traefik, Caddy): a GET with the visitor's method, scheme, host and URI in
X-Forwarded-*.
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
