"""What Redis refuses is told as one event with its cause, never as a flood of tracebacks; errors of
greenroom stay errors.
"""

import pytest
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from structlog.testing import capture_logs

from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.wire import Unreachable
from greenroom.runtime.shared_ledger_store import AGAIN_S, OTHER, RedisFailures

REFUSALS = [
    (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "out of memory"),
    (
        ResponseError("OOM command not allowed when used memory > 'maxmemory'. script: x"),
        "out of memory",
    ),
    (BusyLoadingError("Redis is loading the dataset in memory"), "loading"),
    (ReadOnlyError("You can't write against a read only replica."), "read-only"),
    (ResponseError("MISCONF Redis is configured to save RDB snapshots"), "not saving"),
    (AuthenticationError("Authentication required."), "not signed in"),
]


def from_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(("refusal", "cause"), REFUSALS, ids=range(len(REFUSALS)))
@pytest.mark.parametrize("wrapped", [None, StorageFailed, Unreachable])
def test_a_refusal_is_one_event_that_names_the_redis_and_the_cause(refusal, cause, wrapped) -> None:
    others: list[BaseException] = []
    failures = RedisFailures("redis://here", others.append, lambda: 0.0)
    with capture_logs() as logs:
        for _ in range(100):
            failures(from_cause(wrapped(f"Redis: {refusal}"), refusal) if wrapped else refusal)
    (only,) = logs
    assert (only["event"], only["redis"], "exc_info" in only) == (
        "redis_failed",
        "redis://here",
        False,
    )
    assert only["cause"].startswith(cause)
    assert str(refusal) in only["reason"]
    assert others == []


def test_it_is_told_again_when_it_goes_on_and_at_once_when_the_cause_is_another_one() -> None:
    now = [0.0]
    failures = RedisFailures("redis://here", lambda _: None, lambda: now[0])
    with capture_logs() as logs:
        for now[0] in (0.0, 1.0, AGAIN_S, AGAIN_S + 1):
            failures(Unreachable("no answer in time"))
        failures(REFUSALS[0][0])
    assert [log["cause"].partition(":")[0] for log in logs] == [OTHER, OTHER, "out of memory"]


@pytest.mark.parametrize(
    "error",
    [
        KeyError("a mistake"),
        from_cause(Unreachable("not an answer: a mistake"), KeyError("a mistake")),
    ],
)
def test_an_error_of_greenroom_is_handed_on_whole(error) -> None:
    others: list[BaseException] = []
    with capture_logs() as logs:
        RedisFailures("redis://here", others.append)(error)
    assert (others, logs) == ([error], [])
