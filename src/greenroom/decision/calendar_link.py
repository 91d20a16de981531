"""A calendar entry for a waiting visitor; nothing is stored."""

from collections.abc import Callable
from hashlib import sha256

from greenroom.decision.inquiry import Inquiry
from greenroom.decision.moving_place import CODE_MS, LONGEST_CODE_MS, MovingPlace
from greenroom.decision.observer import Decided, DecisionEvent, Observer
from greenroom.decision.render import ONWARD
from greenroom.decision.tickets import Sealer, marked
from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import AWAY_MAX_MS, Outcome, Standing
from greenroom.pages.calendar import calendar_entry
from greenroom.pages.page import UNCACHEABLE

_HEADERS = AnswerHeaders(
    (b"Content-Type", b"text/calendar; charset=utf-8"),
    (b"Content-Disposition", b'attachment; filename="turn.ics"'),
    *UNCACHEABLE,
    (b"X-Content-Type-Options", b"nosniff"),
)


class CalendarLink:
    def __init__(
        self,
        moving: MovingPlace,
        sealer: Sealer,
        failed: Callable[[Exception, Inquiry], Verdict],
        observe: Observer,
    ) -> None:
        self._moving = moving
        self._sealer = sealer
        self._failed = failed
        self._observe = observe

    def verdict(self, asked: Inquiry) -> Verdict | None:
        ticket = asked.found[0][0]
        self._observe(
            DecisionEvent(
                asked.now_ms, Decided.CALENDAR, asked.room.effective, asked.arrival, ticket
            )
        )

        def seen(outcome: Outcome) -> None:
            try:
                verdict: Verdict = self._entry(asked, outcome)
            except Exception as error:
                verdict = self._failed(error, asked)
            asked.later(verdict)

        ledger = asked.room.ledger
        ask = ledger.reclaim if asked.room.keeps_absent else ledger.peek
        ask(ticket.id, ticket.key, seen)
        return None

    def _entry(self, asked: Inquiry, outcome: Outcome) -> Answer:
        estimate, arrival, room = outcome.estimate, asked.arrival, asked.room
        if outcome.standing is not Standing.WAITING or not outcome.position or estimate is None:
            return ONWARD
        ticket = asked.found[0][0]
        page = room.page.speaking(arrival.header(b"accept-language"))
        uid = sha256(b"greenroom calendar" + ticket.id).hexdigest()[:32]
        lasts_ms = min(int(max(estimate.most_s, estimate.p75_s) * 1000), LONGEST_CODE_MS) + CODE_MS
        claim_min = room.room.claim_minutes if room.keeps_absent else 0
        if claim_min:
            ticket = marked(ticket)
            asked = replace(asked, found=((ticket, b""),))
        url = self._moving.link(asked, lasts_ms)
        body = calendar_entry(
            page.language, page.brand, arrival.host, uid, url, estimate, asked.now_ms, claim_min
        )
        if not claim_min:
            return Answer(200, _HEADERS, body)
        cookies = room.cookies.of(arrival.scheme, arrival.prefix)
        sealed = self._sealer.seal(ticket, room.id)
        cookie = cookies.set(sealed, AWAY_MAX_MS // 1000, asked.now_ms)
        return Answer(200, _HEADERS, body, set_cookie=cookie)
