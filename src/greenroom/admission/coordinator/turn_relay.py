"""The coordinator's side of rows that follow their visitors (`messages.turns`)."""

from collections.abc import Collection
from dataclasses import dataclass

from greenroom.admission.messages.turns import EVERYWHERE, FailureRow, TurnsDown, TurnsUp


@dataclass(frozen=True, slots=True)
class _Heard:
    up: TurnsUp
    at_ms: int


class TurnRelay:
    """The newest report of each data center, of one room."""

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard: dict[str, _Heard] = {}

    def hear(self, name: str, up: TurnsUp | None, now_ms: int) -> None:
        if up is not None:
            self._heard[name] = _Heard(up, now_ms)

    def forget(self, name: str) -> None:
        self._heard.pop(name, None)

    @property
    def heard(self) -> bool:
        return bool(self._heard)

    def answer(self, name: str, others: Collection[str], now_ms: int) -> TurnsDown:
        rows: list[FailureRow] = []
        sought: list[tuple[bytes, str, int]] = []
        failing = False
        for other in others:
            heard = self._heard.get(other)
            if heard is None:
                continue
            failing = failing or heard.up.failing
            passed_ms = now_ms - heard.at_ms
            rows += [
                (ticket_id, other, serial, age_ms + passed_ms, offset_s, state)
                for ticket_id, to, serial, age_ms, offset_s, state in heard.up.rows
                if to in (name, EVERYWHERE)
            ]
            sought += [(one, other, age_ms + passed_ms) for one, age_ms in heard.up.seeks]
        mine = self._heard.get(name)
        got = [row[:3] for row in mine.up.rows if self._is_there(name, row, others)] if mine else []
        return TurnsDown(failing, tuple(rows), tuple(got), tuple(sought))

    def _is_there(self, source: str, row: FailureRow, others: Collection[str]) -> bool:
        ticket_id, to, serial = row[:3]
        takers = others if to == EVERYWHERE else (to,)
        return all(
            other in self._heard and (ticket_id, source, serial) in self._heard[other].up.got
            for other in takers
        )
