"""More time for a visitor inside (WCAG 2.2.1): how long the session lasts, and a press that makes
it last longer. Looking changes nothing, and nobody is admitted here.
"""

from greenroom.admission.decide import SESSION_SCRIPT_QUERY, asked_by_own_page
from greenroom.decision.inquiry import Inquiry
from greenroom.decision.observer import Decided, DecisionEvent
from greenroom.decision.own_page import OwnPage
from greenroom.decision.render import OUTAGE, for_scripts
from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import Outcome, Standing, Ticket
from greenroom.pages.page import UNCACHEABLE
from greenroom.pages.session_page import refresh_s, session_json, session_page, session_script
from greenroom.request.admissible import prefers_json

_SCRIPT = AnswerHeaders(
    (b"Content-Type", b"text/javascript; charset=utf-8"),
    (b"Cache-Control", b"public, max-age=3600"),
    (b"X-Content-Type-Options", b"nosniff"),
)
_TO_PAGE = AnswerHeaders((b"Location", b"?greenroom=session"), *UNCACHEABLE)


class MoreTime(OwnPage):
    def verdict(self, asked: Inquiry) -> Verdict | None:
        arrival, room = asked.arrival, asked.room
        ticket = asked.found[0][0] if asked.found else None
        self._observe(DecisionEvent(asked.now_ms, Decided.SESSION, room.effective, arrival, ticket))
        if arrival.query == SESSION_SCRIPT_QUERY:
            return for_scripts(Answer(200, _SCRIPT, session_script()), room.page, arrival)
        if ticket is None or not ticket.accepted_ms:
            return self._answer(asked, None)
        holder = ticket
        pressed = arrival.method == "POST" and asked_by_own_page(arrival)

        def told(outcome: Outcome) -> Answer:
            return self._known(asked, holder, outcome, pressed)

        known = self._later(asked, told)
        if pressed:
            room.ledger.extend(ticket.id, room.extensions, known)
        else:
            room.ledger.peek(ticket.id, ticket.key, known)
        return None

    def _known(self, asked: Inquiry, ticket: Ticket, outcome: Outcome, pressed: bool) -> Answer:
        if outcome.storage_failed:
            return for_scripts(OUTAGE, asked.room.page, asked.arrival)
        if outcome.standing is not Standing.ACTIVE:
            return self._answer(asked, None)
        if not pressed:
            refused = asked.arrival.method == "POST"
            return self._answer(asked, outcome, last=refused)
        now_ms, arrival, room = self._now_ms(), asked.arrival, asked.room
        renewed = replace(ticket, checked_ms=outcome.renewed_ms, refresh_ms=0)
        lasts_s = max(1, (outcome.expires_ms - now_ms) // 1000)
        cookie = room.cookies.of(arrival.scheme, arrival.prefix).set(
            self._sealer.seal(renewed, room.id), lasts_s, now_ms
        )
        last = (
            not room.renews
            and outcome.renewed_ms < asked.now_ms - room.effective.room.renewal_age_ms
        )
        if not last and not prefers_json(arrival.header(b"accept")):
            return Answer(303, _TO_PAGE, b"", cookie)
        return replace(self._answer(asked, outcome, last), set_cookie=cookie)

    def _answer(self, asked: Inquiry, outcome: Outcome | None, last: bool = False) -> Answer:
        arrival, session_ms = asked.arrival, asked.room.session_ms
        page = asked.room.page.speaking(arrival.header(b"accept-language"))
        ends_ms = outcome.expires_ms if outcome is not None else 0
        left_s = max(0, ends_ms - asked.now_ms) // 1000 if ends_ms else None
        own = () if left_s is None else ((b"Greenroom-Session", b"ends=%d" % (ends_ms // 1000)),)
        if prefers_json(arrival.header(b"accept")):
            body = session_json(page.language, left_s, ends_ms, session_ms, last)
            return for_scripts(Answer(200, page.json_headers.with_own(*own), body), page, arrival)
        if left_s is not None:
            own = (*own, (b"Refresh", b"%d" % refresh_s(left_s, session_ms)))
        body = session_page(page.language, page.brand, left_s, session_ms, last)
        headers = page.framed_by_its_site().with_own(*own)
        return for_scripts(Answer(200, headers, body), page, arrival)
