"""What one probe of an address brought back, and every reason that a probe can fail for."""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """Why a probe failed, in the published words."""

    TCP_FAILED = "TCP connection failed"
    HTTP_TIMEOUT = "HTTP timeout occurred"
    CODE = "Response code mismatch error"
    BODY = "Response body mismatch error"
    TLS_UNTRUSTED = "TLS untrusted certificate error"
    TLS_NAME = "TLS name mismatch error"
    TLS_PROTOCOL = "TLS protocol error"
    TLS_UNRECOGNIZED = "TLS unrecognized name error"
    NO_ROUTE = "No route to host error"
    TCP_TIMEOUT = "TCP Timeout"
    NETWORK_UNREACHABLE = "Network Unreachable"
    INVALID_RESPONSE = "HTTP Invalid Response"
    UNKNOWN_HOST = "DNS Unknown Host"
    RESET = "Connection Reset by Peer"
    CONFIGURATION = "Monitor Configuration Error"
    RESTRICTED = "DNS Internal"
    OTHER = "Other Failure"


TIMEOUTS = frozenset({Reason.HTTP_TIMEOUT, Reason.TCP_TIMEOUT})
"""The only reasons after which a probe tries again."""


class ProbeResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One probe. `reason` is empty when all was well.

    `tcp_ms` and `tls_ms` are the two handshakes by themselves; `ttfb_ms` and `rtt_ms` run from the moment the connection was ready
    to the first byte and to the end of what is read of the page, so `rtt_ms` is never the smaller one. What did not happen is 0.
    """

    reason: str = ""
    code: int = 0  # status of the answer, 0 for none
    address: str = ""  # the address that was connected to
    tcp_ms: float = 0.0
    tls_ms: float = 0.0
    ttfb_ms: float = 0.0
    rtt_ms: float = 0.0
    tries: int = 1

    @property
    def ok(self) -> bool:
        """Whether the origin did what is expected of it."""
        return not self.reason
