"""TLS of a probe: the name it sends, the name it accepts, and the certificates it trusts."""

import re
import ssl
from collections.abc import Mapping
from functools import cached_property
from ipaddress import ip_address
from typing import Any


class NameMismatch(Exception): ...


class TlsContexts:
    """Contexts are created on first use, because reading certificates is slow. TLS 1.2 or later."""

    def __init__(self, ca_file: str | None = None) -> None:
        self._ca_file = ca_file

    @cached_property
    def named(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    @cached_property
    def unnamed(self) -> ssl.SSLContext:
        """`require_name` checks the certificate's name."""
        context = ssl.create_default_context(cafile=self._ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        return context

    @cached_property
    def unchecked(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def is_address(host: str) -> bool:
    try:
        return bool(ip_address(host)) or True
    except ValueError:
        return False


def require_name(certificate: Mapping[str, Any], name: str) -> None:
    """Raises NameMismatch; `*` matches a first label."""
    wanted = name.rstrip(".").lower()
    names = [
        value.lower() for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"
    ]
    for found in names:
        if found == wanted or (
            found.startswith("*.") and re.fullmatch(r"[^.]+" + re.escape(found[1:]), wanted)
        ):
            return
    raise NameMismatch(
        f"the certificate is for {', '.join(names[:5]) or 'no host name'}, not for {name}"
    )
