"""nginx auth_request: the answer to the question is yes or no; the page is fetched in a second
request, which names the verdict.

nginx passes on neither body nor most headers of a refused question, so the verdict is kept for a
moment under an unguessable id (`VerdictStore`). The second request renders that verdict and asks
nothing again: it takes no second place and spends no permit.
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
