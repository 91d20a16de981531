"""Verdicts that wait between two requests of a proxy: the question, and the fetching of the
page.
"""

from collections.abc import Callable

from greenroom.decision.render import OUTAGE, render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival
from greenroom.request.admissible import UPDATE_HEADER

KEPT_S = 10.0

KEPT_MAX = 4_096

ID_BYTES = 16

_RENDERED = frozenset(
    b"accept accept-language accept-encoding access-control-request-method origin purpose referer"
    b" sec-fetch-dest sec-fetch-mode sec-purpose sec-websocket-key upgrade user-agent x-moz"
    b" x-purpose x-requested-with".split()
) | {UPDATE_HEADER}

VALUE_MAX = 1_024
"""No honest Accept header is longer."""


class VerdictStore:
    """By an id that cannot be guessed; each verdict is given out once."""

    def __init__(self, entropy: Callable[[int], bytes], now_s: Callable[[], float]) -> None:
        self._entropy = entropy
        self._now_s = now_s
        self._kept: dict[bytes, tuple[float, Verdict, Arrival]] = {}  # in the order of their coming

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, verdict: Verdict, arrival: Arrival) -> bytes:
        now_s = self._now_s()
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) < KEPT_MAX and self._kept[oldest][0] > now_s:
                break
            del self._kept[oldest]
        name = self._entropy(ID_BYTES).hex().encode()
        self._kept[name] = (now_s + KEPT_S, verdict, _small(arrival))
        return name

    def page(self, name: bytes) -> Answer:
        """A page that tries again by itself when the verdict is not kept."""
        until_s, verdict, arrival = self._kept.pop(name, (0.0, OUTAGE, None))
        if arrival is None or until_s <= self._now_s() or isinstance(verdict, Forward):
            return OUTAGE
        return render(verdict, arrival) if isinstance(verdict, Hold) else verdict


def _small(arrival: Arrival) -> Arrival:
    headers = tuple(
        [(name, value[:VALUE_MAX]) for name, value in arrival.headers if name in _RENDERED]
    )
    path = arrival.path if len(arrival.path) <= VALUE_MAX else "/"
    facts = None if arrival.facts is None else dict(headers)
    return Arrival(
        arrival.method,
        arrival.scheme,
        arrival.host,
        path,
        "",
        headers,
        "",
        facts=facts,
        signs=arrival.signs,
    )
