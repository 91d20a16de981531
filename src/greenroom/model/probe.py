"""The result of one probe, and every reason for a failure."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec

from greenroom.model.health_check import HealthCheck


class Reason(StrEnum):
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


REASON_WORDS: Mapping[str, str] = {
    Reason.TCP_FAILED: "The server refused the connection: nothing listens on this port.",
    Reason.HTTP_TIMEOUT: "The server took the request and did not answer in time.",
    Reason.CODE: "The answer had another status code than expected.",
    Reason.BODY: "The answer does not contain the expected text.",
    Reason.TLS_UNTRUSTED: "The certificate is not trusted: expired, self-signed or incomplete.",
    Reason.TLS_NAME: "The certificate is for another name.",
    Reason.TLS_PROTOCOL: "The TLS handshake failed. The server needs TLS 1.2 or later.",
    Reason.TLS_UNRECOGNIZED: "The server has no certificate for this name.",
    Reason.NO_ROUTE: "There is no route to the server.",
    Reason.TCP_TIMEOUT: "The server did not take the connection in time.",
    Reason.NETWORK_UNREACHABLE: "The server's network cannot be reached.",
    Reason.INVALID_RESPONSE: "The answer is not valid HTTP, or ended too early.",
    Reason.UNKNOWN_HOST: "The name of the server is not known.",
    Reason.RESET: "The server closed the connection before it had answered.",
    Reason.CONFIGURATION: "The check cannot be run as it is configured.",
    Reason.RESTRICTED: "The name leads to an address that must not be probed.",
    Reason.OTHER: "The probe failed for another reason.",
}


TIMEOUTS = frozenset({Reason.HTTP_TIMEOUT, Reason.TCP_TIMEOUT})


Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=86_400_000)]


class ProbeResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """`reason` is empty for success. `ttfb_ms` and `rtt_ms` run from the ready connection to the first
    byte and to the end of what is read of the body; `request_ms` is the part of both in which the
    request was sent. 0: did not happen.
    """

    reason: str = ""
    code: int = 0  # status of the answer, 0 for none
    address: str = ""  # the address that was connected to
    tcp_ms: float = 0.0
    tls_ms: float = 0.0
    ttfb_ms: float = 0.0
    rtt_ms: float = 0.0
    tries: int = 1
    dns_ms: float = 0.0
    request_ms: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.reason


class Report(NamedTuple):
    check_id: str
    at_ms: int
    result: ProbeResult


REPORTS_MAX = 5_000

AGENT_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


class ProbeReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Has ages, because machines' clocks differ."""

    check_id: Annotated[str, msgspec.Meta(max_length=64)]
    age_ms: Annotated[
        int, msgspec.Meta(ge=0, le=86_400_000)
    ]  # how long ago the probe began, when the report was sent
    reason: Annotated[str, msgspec.Meta(max_length=64)] = ""  # one of Reason, or empty
    code: Annotated[int, msgspec.Meta(ge=0, le=999)] = 0
    address: Annotated[str, msgspec.Meta(max_length=64)] = ""
    dns_ms: Milliseconds = 0.0
    tcp_ms: Milliseconds = 0.0
    tls_ms: Milliseconds = 0.0
    request_ms: Milliseconds = 0.0
    ttfb_ms: Milliseconds = 0.0
    rtt_ms: Milliseconds = 0.0
    tries: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1


class AgentReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`session` changes with every start; `number` identifies repeats. `checks` is the revision of
    the agent's checks.
    """

    region: str
    session: Annotated[str, msgspec.Meta(min_length=8, max_length=64)]
    number: Annotated[int, msgspec.Meta(ge=1)]
    checks: Annotated[str, msgspec.Meta(max_length=64)] = ""
    reports: Annotated[list[ProbeReport], msgspec.Meta(max_length=REPORTS_MAX)] = []


class AgentOrders(msgspec.Struct, frozen=True):
    """`checks` None: the agent has them."""

    report_every_s: float
    revision: str
    checks: Sequence[HealthCheck] | None


class CheckEvent(msgspec.Struct, frozen=True):
    """`scope`: agent or overall. `region` is a code, or Global for greenroom's own agent in place
    of all regions.
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
