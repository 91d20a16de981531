"""The verdict about one arrival, independent of its transport."""

import msgspec

from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.visit import Held, Ticket
from greenroom.pages import Page


class Forward(msgspec.Struct, frozen=True, gc=False):
    """`set_cookie`: a whole Set-Cookie value, or empty. `ticket` None: no room, or let by without a
    ticket. `expires_ms`: unless renewed. `provisional`: no ticket has come back yet.
    `renews_early`: the ticket has at least half of its time left, so an answer that shared caches
    may keep goes out without a new one.
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
    session: bytes = b""  # value of the header Greenroom-Session, which applications read; or empty
    lines: bytes = b""  # of the pass and of that header, for the built-in gateway
    reentered: bool = False  # by a turn that was kept when the origin failed


SharedPages = dict[tuple[Page, bytes | None, int], tuple[AnswerHeaders, bytes]]


class Hold(msgspec.Struct, frozen=True, gc=False):
    """`held` None: without a place or page. `uniform`: every held request gets the page and
    `status`. `shown`: shared answers of this moment; None: the page is for this visitor alone.
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
