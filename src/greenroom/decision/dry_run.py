"""Parses a described request exactly like a real one, for `explain`."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from greenroom.decision.arrival import Sender, arrival_from
from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.model.visit import Arrival
from greenroom.request.canonical import Refusal


def dry_run(
    url: str,
    method: str,
    headers: Iterable[tuple[str, str]],
    client: str,
    policy: ForwardedPolicy | None = None,
) -> Arrival | Refusal:
    """`headers` may bring another Host; `client` is the peer."""
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
    try:
        sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        named = authority.encode("latin-1")
        raw = path.encode()
    except UnicodeEncodeError:
        return Refusal(
            400,
            "the URL or a header contains a character that is not allowed in a request;"
            " percent-encode it",
        )
    host = [] if any(name.lower() == b"host" for name, _ in sent) else [(b"Host", named)]
    return arrival_from(
        method, raw, [*host, *sent], Sender(client, scheme == "https", policy or ForwardedPolicy())
    )
