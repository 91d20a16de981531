"""The configuration store with the outbox beside it, as a process has them."""

from greenroom.alerts.store import SqlOutbox
from greenroom.configuration.store import SqlStore


class StoreWithOutbox(SqlStore):
    """One database."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.outbox = SqlOutbox(self)
