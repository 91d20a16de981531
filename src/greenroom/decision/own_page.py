"""greenroom's own pages, opened by a visitor with a ticket."""

from collections.abc import Callable
from typing import TypeVar

from greenroom.decision.inquiry import Inquiry
from greenroom.decision.observer import Observer
from greenroom.decision.render import for_scripts
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer

T = TypeVar("T")


class OwnPage:
    def __init__(
        self,
        sealer: Sealer,
        now_ms: Callable[[], int],
        failed: Callable[[Exception, Inquiry], Verdict],
        observe: Observer,
    ) -> None:
        self._sealer = sealer
        self._now_ms = now_ms
        self._failed = failed
        self._observe = observe

    def _later(self, asked: Inquiry, answer: Callable[[T], Verdict | None]) -> Callable[[T], None]:
        """For the ledger, or what else answers later. None: `answer` asked it again."""

        def answered(found: T) -> None:
            try:
                verdict = answer(found)
            except Exception as error:
                verdict = self._failed(error, asked)
            if verdict is not None:
                asked.later(verdict)

        return answered

    def _page(self, asked: Inquiry, make: Callable[..., bytes], *told: str | bool) -> Answer:
        page = asked.room.page.speaking(asked.arrival.header(b"accept-language"))
        body = make(page.language, page.brand, *told)
        return for_scripts(Answer(200, page.farewell_headers(), body), page, asked.arrival)
