"""Every way of asking that greenroom understands over HTTP."""

from greenroom.proxies.auth_request import AUTH_REQUEST
from greenroom.proxies.dialect import Dialect
from greenroom.proxies.ext_authz import EXT_AUTHZ
from greenroom.proxies.forward_auth import FORWARD_AUTH

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
