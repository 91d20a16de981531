"""Logs a store outage once, and again for a new reason."""

import structlog

from greenroom.errors import StorageFailed

log = structlog.get_logger(__name__)


class StoreOutage:
    """`waiting` and `resumed` are event names."""

    def __init__(self, waiting: str, resumed: str) -> None:
        self._waiting = waiting
        self._resumed = resumed
        self._reason = ""

    def failed(self, error: StorageFailed) -> None:
        reason = str(error)
        if reason != self._reason:
            log.warning(self._waiting, reason=reason)
        self._reason = reason

    def answered(self) -> None:
        if self._reason:
            log.info(self._resumed)
        self._reason = ""
