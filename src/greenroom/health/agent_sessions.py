"""Recognizes duplicate batches, and two programs that use one agent name."""

from typing import NamedTuple

from greenroom.errors import AgentNameTaken

TAKEN_MS = 12_000


class _Session(NamedTuple):
    id: str
    number: int
    heard_ms: int


class AgentSessions:
    def __init__(self) -> None:
        self._known: dict[str, _Session] = {}

    def again(self, name: str, session: str, number: int, now_ms: int) -> bool:
        """Raises AgentNameTaken while another agent uses the name."""
        known = self._known.get(name)
        if known and known.id != session and now_ms - known.heard_ms < TAKEN_MS:
            raise AgentNameTaken(
                f"another agent reports as {name!r}; give each its own name, or wait"
                f" {TAKEN_MS // 1000} s after a crash"
            )
        repeated = known is not None and known.id == session and number <= known.number
        self._known[name] = _Session(
            session, max(number, known.number) if known and repeated else number, now_ms
        )
        return repeated

    def forget(self, name: str) -> None:
        self._known.pop(name, None)
