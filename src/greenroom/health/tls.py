"""TLS as a probe speaks it: which name is sent, which name is believed, and which certificates are."""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Self


class NameMismatch(Exception):
    """The certificate is good, and belongs to another name."""


@dataclass(frozen=True, slots=True)
class TlsContexts:
    """Made once: reading the certificates of a machine takes longer than a probe. TLS 1.2 or later, as published."""

    named: ssl.SSLContext
    """A name is sent, and the certificate must be for it."""
    unnamed: ssl.SSLContext
    """No name is sent; the certificate must be a trusted one, and `require_name` looks at its name."""
    unchecked: ssl.SSLContext
    """Any certificate will do."""

    @classmethod
    def trusting(cls, ca_file: str | None = None) -> Self:
        """With the certificates of this machine, or those of a file."""
        named, unnamed = (ssl.create_default_context(cafile=ca_file) for _ in range(2))
        unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unnamed.check_hostname = unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        for context in (named, unnamed, unchecked):
            context.minimum_version = ssl.TLSVersion.TLSv1_2
        return cls(named, unnamed, unchecked)


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        return bool(ip_address(host)) or True
    except ValueError:
        return False


def require_name(certificate: Mapping[str, Any], name: str) -> None:
    """Raises NameMismatch unless the certificate (as ssl gives it) is for this host name; `*` stands for one whole first label."""
    wanted = name.rstrip(".").lower()
    names = [value.lower() for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    for found in names:
        if found == wanted or (found.startswith("*.") and re.fullmatch(r"[^.]+" + re.escape(found[1:]), wanted)):
            return
    raise NameMismatch(f"the certificate is for {', '.join(names[:5]) or 'no host name'}, not for {name}")
