"""A request that nobody sent, read exactly as if it had come in: for asking what would happen to it."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from greenroom.core.canonical import Refusal
from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.gateway.wire.request_head import Peer, RequestHead, read_head
from greenroom.model.visit import Arrival


def dry_run(
    url: str, method: str, headers: Iterable[tuple[str, str]], client: str, policy: ForwardedPolicy | None = None
) -> Arrival | Refusal:
    """The arrival that a request for this URL makes, or why it is refused. `headers` may bring another Host; `client` is the peer."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        authority = parts.netloc.rpartition("@")[2]
        scheme = parts.scheme.lower()
    except ValueError as error:
        return Refusal(400, f"the URL cannot be read: {error}")
    if scheme not in ("http", "https") or not authority:
        return Refusal(400, "the URL must begin with http:// or https:// and name a host")
    target = url.split("://", 1)[-1].partition("#")[0]
    cut = min((at for at in (target.find("/"), target.find("?")) if at >= 0), default=len(target))
    path = target[cut:] if target[cut:].startswith("/") else f"/{target[cut:]}"
    lines = [f"{name}: {value}" for name, value in headers]
    host = [] if any(line.lower().startswith("host:") for line in lines) else [f"Host: {authority}"]
    try:
        block = "\r\n".join([f"{method} {path} HTTP/1.1", *host, *lines, "", ""]).encode("latin-1")
    except UnicodeEncodeError:
        return Refusal(400, "the URL or a header contains a character that is not allowed in a request; percent-encode it")
    head = read_head(block, Peer(client, scheme == "https", policy or ForwardedPolicy()))
    return head.arrival if isinstance(head, RequestHead) else head
