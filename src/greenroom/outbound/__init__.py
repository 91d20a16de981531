"""Guarded requests to addresses that others wrote down: webhooks, probes, icons."""

from greenroom.outbound.exchange import (
    OutboundAnswer,
    Request,
    RequestLimits,
    exchange,
    fetch_picture,
)
from greenroom.outbound.guard import Guard, GuardedBackend, Resolve, resolve_by_system, tls_context
from greenroom.outbound.policy import (
    OutboundFailed,
    OutboundPolicy,
    OutboundRefused,
    OutboundTarget,
    read_target,
)

__all__ = [
    "Guard",
    "GuardedBackend",
    "OutboundAnswer",
    "OutboundFailed",
    "OutboundPolicy",
    "OutboundRefused",
    "OutboundTarget",
    "Request",
    "RequestLimits",
    "Resolve",
    "exchange",
    "fetch_picture",
    "read_target",
    "resolve_by_system",
    "tls_context",
]
