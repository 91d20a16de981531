"""The verdict about one arrival, independent of how it is sent: forward, hold, or answer.

| verdict | a front end |
|---|---|
| Forward | sends the request to the origin and adds `set_cookie` to the origin's answer |
| Hold | answers with what `render.render` makes of it, now, later or elsewhere: rendering asks nothing again |
| Answer | sends it: a receipt, a farewell, an outage |
"""

import msgspec

from greenroom.model.answer import Answer
from greenroom.model.visit import Held
from greenroom.pages import Page


class Forward(msgspec.Struct, frozen=True, gc=False):
    """Go on to the origin. `set_cookie` is a whole Set-Cookie value to add to the origin's answer, or empty.

    `room_id` and `ticket_id` are empty when no room covers the request or the room let it by without a ticket.
    """

    set_cookie: bytes = b""
    room_id: str = ""
    ticket_id: bytes = b""
    obeys_origin: bool = False  # the room enabled origin commands (revoke)


class Hold(msgspec.Struct, frozen=True, gc=False):
    """The visitor waits. `held` are the facts of the waiting page; None for an arrival that has no place and can show no page.

    `status` is the room's status code for held visitors; `json` whether the room answers JSON to those who prefer it; `uniform` whether
    every held request is answered with the page and that status, as the original does.
    """

    room_id: str
    page: Page
    status: int
    json: bool
    uniform: bool
    held: Held | None = None
    set_cookie: bytes = b""


Verdict = Forward | Hold | Answer
