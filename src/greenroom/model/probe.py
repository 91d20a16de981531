"""What one probe of an address brought back, and every reason that a probe can fail for."""

from enum import StrEnum
from typing import NamedTuple

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


class Report(NamedTuple):
    """One probe of an agent, in the time of the process that was told of it."""

    check_id: str
    at_ms: int
    result: ProbeResult


class ProbeReport(msgspec.Struct, frozen=True):
    """A result on its way from an agent. Ages travel between machines, clocks do not."""

    check_id: str
    age_ms: int  # how long ago the probe began, when the report was sent
    result: ProbeResult


class CheckEvent(msgspec.Struct, frozen=True):
    """One row of the event log: a probe of an agent, or (`scope` overall) what all of them come to.

    Where greenroom's own agent stands in for all regions its probes are the overall rows. `region` is a code, or Global for those.
    """

    at_ms: int
    check_id: str
    zone_id: str
    name: str
    fqdn: str  # the address that the check names
    healthy: bool
    region: str
    scope: str  # agent or overall
    result: ProbeResult
    changed: bool = False  # this event changed the status
    expected: str = ""  # the codes that would have been good
    agent: str = ""
