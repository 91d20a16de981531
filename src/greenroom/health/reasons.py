"""Maps exceptions to the published reasons."""

import errno
import socket
import ssl
from collections.abc import Iterator

import httpcore

from greenroom.health.tls import NameMismatch
from greenroom.model.probe import Reason
from greenroom.outbound import OutboundRefused

BY_NUMBER = {
    errno.EHOSTUNREACH: Reason.NO_ROUTE,
    errno.EHOSTDOWN: Reason.NO_ROUTE,
    errno.ENETUNREACH: Reason.NETWORK_UNREACHABLE,
    errno.ENETDOWN: Reason.NETWORK_UNREACHABLE,
    errno.ECONNREFUSED: Reason.TCP_FAILED,
    errno.ECONNRESET: Reason.RESET,
    errno.ECONNABORTED: Reason.RESET,
    errno.EPIPE: Reason.RESET,
    errno.ETIMEDOUT: Reason.TCP_TIMEOUT,
}

NAME_CODES = frozenset({62, 64})
"""OpenSSL's codes for a certificate of another name."""

UNRECOGNIZED = frozenset(
    {"TLSV1_UNRECOGNIZED_NAME", "TLSV1_ALERT_UNRECOGNIZED_NAME", "SSLV3_ALERT_UNRECOGNIZED_NAME"}
)

BY_CLASS: tuple[tuple[type[BaseException], Reason], ...] = (
    (socket.gaierror, Reason.UNKNOWN_HOST),
    (OutboundRefused, Reason.CONFIGURATION),
    (NameMismatch, Reason.TLS_NAME),
    (ssl.SSLError, Reason.TLS_PROTOCOL),
    (httpcore.RemoteProtocolError, Reason.INVALID_RESPONSE),
    (httpcore.LocalProtocolError, Reason.CONFIGURATION),
)
"""The first matching row counts."""

LAST: tuple[tuple[type[BaseException], Reason], ...] = (
    (httpcore.ConnectTimeout, Reason.TCP_TIMEOUT),
    (httpcore.TimeoutException, Reason.HTTP_TIMEOUT),
    (httpcore.ReadError, Reason.RESET),
    (httpcore.WriteError, Reason.RESET),
)


def reason_of(error: BaseException) -> Reason:
    causes = list(_causes(error))
    for found in (exact(cause) for cause in reversed(causes)):
        if found:
            return found
    for kind, reason in LAST:
        if any(isinstance(cause, kind) for cause in causes):
            return reason
    return Reason.OTHER


LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})


def lacking(error: BaseException) -> str:
    found = (
        cause for cause in _causes(error) if isinstance(cause, OSError) and cause.errno in LACKS
    )
    return next((cause.strerror or str(cause) for cause in found), "")


def exact(error: BaseException) -> Reason | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Reason.TLS_NAME if error.verify_code in NAME_CODES else Reason.TLS_UNTRUSTED
    if isinstance(error, ssl.SSLError) and error.reason in UNRECOGNIZED:
        return Reason.TLS_UNRECOGNIZED
    for kind, reason in BY_CLASS:
        if isinstance(error, kind):
            return reason
    return BY_NUMBER.get(error.errno or 0) if isinstance(error, OSError) else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = (
            error.exceptions[0]
            if isinstance(error, BaseExceptionGroup)
            else error.__cause__ or error.__context__
        )
