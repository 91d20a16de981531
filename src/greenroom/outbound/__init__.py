"""Requests that greenroom itself makes to addresses which others wrote down: webhooks, probes, icons. All of them pass one guard."""

from greenroom.outbound.exchange import Answer, Limits, Request, exchange
from greenroom.outbound.guard import Guard, GuardedBackend, Resolve, resolve_by_system
from greenroom.outbound.policy import OutboundFailed, OutboundPolicy, OutboundRefused, Target, read_target

__all__ = [
    "Answer",
    "Guard",
    "GuardedBackend",
    "Limits",
    "OutboundFailed",
    "OutboundPolicy",
    "OutboundRefused",
    "Request",
    "Resolve",
    "Target",
    "exchange",
    "read_target",
    "resolve_by_system",
]
