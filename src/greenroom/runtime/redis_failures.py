"""Failures of Redis as one log event a minute for each cause, without traceback."""

import time
from collections.abc import Callable

import structlog
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)

from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.wire import Unreachable
from greenroom.runtime.loops import OnError

AGAIN_S = 60.0

CAUSES: tuple[tuple[type[Exception], str, str], ...] = (
    (OutOfMemoryError, "OOM", "out of memory: the server has reached its maxmemory"),
    (BusyLoadingError, "LOADING", "loading: the server has just started and reads its data"),
    (ReadOnlyError, "READONLY", "read-only: the server is a replica"),
    (AuthenticationError, "NOAUTH", "not signed in: the server wants another password or user"),
    (AuthorizationError, "NOAUTH", "not signed in: the server wants another password or user"),
    (NoPermissionError, "NOPERM", "not allowed: the user of greenroom lacks a permission"),
    (
        Exception,
        "MISCONF",
        "not saving: the server cannot write its data to its disk and refuses changes",
    ),
)
"""The class of the error or of its cause, or the reply's first word; and what it means."""

OTHER = "no answer, or a refusal"

log = structlog.get_logger(__name__)


def cause_of(failure: BaseException) -> str:
    error: BaseException | None = failure
    while error is not None:
        for kind, word, meaning in CAUSES:
            if (kind is not Exception and isinstance(error, kind)) or str(error).startswith(word):
                return meaning
        error = error.__cause__
    return OTHER


def is_failure_of_redis(error: BaseException) -> bool:
    """An unreadable answer is an error of greenroom."""
    while isinstance(error, (Unreachable, StorageFailed)) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, (Unreachable, StorageFailed, RedisError, OSError))


class RedisFailures:
    def __init__(
        self, name: str, on_error: OnError, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`on_error` receives everything that is no failure of Redis."""
        self._name = name
        self._on_error = on_error
        self._now_s = now_s
        self._told_s: dict[str, float] = {}

    def __call__(self, error: BaseException) -> None:
        if not is_failure_of_redis(error):
            self._on_error(error)
            return
        cause, now_s = cause_of(error), self._now_s()
        if now_s >= self._told_s.get(cause, float("-inf")) + AGAIN_S:
            self._told_s[cause] = now_s
            log.error("redis_failed", redis=self._name, cause=cause, reason=str(error))
