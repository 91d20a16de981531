"""nginx auth_request: the question's answer is yes or no; a second request, which names the
verdict, fetches the page. nginx passes on neither body nor most headers of a refused question, so
the verdict is kept for a moment (`VerdictStore`).
"""

from greenroom.proxies.dialect import Dialect, from_headers

METHOD, URI, HOST = b"x-original-method", b"x-original-uri", b"x-original-host"

AUTH_REQUEST = Dialect(
    "auth_request",
    "/nginx/decide",
    "nginx auth_request",
    from_headers(METHOD, URI, HOST),
    frozenset({METHOD, URI, HOST, b"host"}),
    two_steps=True,
    target_header=URI,
)

PAGE_PATH = "/nginx/page"
