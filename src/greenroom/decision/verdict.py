"""The verdict about one arrival, independent of how it is sent: forward, hold, or answer.

| verdict | a front end |
|---|---|
| Forward | sends the request to the origin and adds `set_cookie` to the origin's answer |
| Hold | answers with what `render.render` makes of it, now, later or elsewhere |
| Answer | sends it: a receipt, a farewell, an outage |
"""

import msgspec

from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.visit import Held, Ticket
from greenroom.pages import Page


class Forward(msgspec.Struct, frozen=True, gc=False):
    """Forwards to the origin. `set_cookie` is a whole Set-Cookie value for its answer, or empty.

    `room_id` is empty and `ticket` None when no room covers the request or the room let it by
    without a ticket. `expires_ms` is the end of the session unless renewed; `provisional`: it lives
    for some seconds only, because no ticket has come back yet. `renews_early`: the visitor has this
    ticket already, with at least half of its time left, so an answer that shared caches may keep
    goes out without it (the session is renewed all the same). `scheme` is the arrival's, for the
    attributes of the cookie.
    """

    set_cookie: bytes = b""
    room_id: str = ""
    ticket: Ticket | None = None
    obeys_origin: bool = False  # the room enabled origin commands (revoke)
    expires_ms: int = 0
    provisional: bool = False
    renews_early: bool = False
    pass_cookie: bytes = (
        b""  # a second Set-Cookie value: the native pass, for front ends behind or inside a proxy
    )
    scheme: str = "http"
    page: Page | None = None  # of the room: what the site adds to a page about its origin
    target: bytes = (
        b""  # what the origin is sent in the place of the target that came (Arrival.otherwise)
    )
    prefix: str = ""  # the arrival's, on which the path of the cookie depends


SharedPages = dict[tuple[Page, bytes | None, int], tuple[AnswerHeaders, bytes]]
"""Shared answers by page and language, Accept-Encoding and status."""


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Holds the visitor. `held` are the facts of the page; None without a place or page.

    `status` is the room's status code for held visitors; `json`: the room answers JSON to those who
    prefer it; `uniform`: every held request gets the page and that status, as the original does.
    `shown`: shared answers of this moment; None: the page is for this visitor alone.
    """

    room_id: str
    page: Page
    status: int
    json: bool
    uniform: bool
    held: Held | None = None
    set_cookie: bytes = b""
    shown: SharedPages | None = None
    applied: bytes = (
        b""  # the preference of the client that was followed (Preference-Applied, RFC 7240)
    )


Verdict = Forward | Hold | Answer
