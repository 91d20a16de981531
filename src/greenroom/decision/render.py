"""The fixed parts of what is answered from here: headers of held pages, the goodbye, the outage."""

from functools import lru_cache

from greenroom.model.room import Room
from greenroom.model.visit import Answer
from greenroom.pages import BUILT_IN_HEAD, UNCACHEABLE, left_page

UPDATE_LET_IN = b'{"cfWaitingRoom":{"inWaitingRoom":false}}'
LEFT = b'{"greenroom":{"left":true}}'

OUTAGE_RETRY_S = 10
PLACELESS_RETRY_S = 20

_PLAIN = b"Content-Type: text/plain; charset=utf-8\r\n" + UNCACHEABLE + b"X-Robots-Tag: noindex\r\n"

OUTAGE = Answer(
    503,
    _PLAIN + b"Retry-After: %d\r\nRefresh: %d\r\n" % (OUTAGE_RETRY_S, OUTAGE_RETRY_S),
    b"Please wait a moment. This page tries again by itself.\n",
)
"""What a visitor gets when something is broken in here: held, never passed on."""


@lru_cache(maxsize=1_024)
def held_head(head: bytes, next_try_s: int, status: int) -> bytes:
    """Header lines of a held page: the page's own, Refresh while it refreshes, Retry-After unless 200."""
    if not next_try_s:
        return head
    retry = b"" if status == 200 else b"Retry-After: %d\r\n" % next_try_s
    return b"%bRefresh: %d\r\n%b" % (head, next_try_s, retry)


def placeless_answer(room: Room, speculative: bool) -> Answer:
    """For a newcomer that cannot show a page. Browsers throw a speculative load away on 503, so it never covers a real one."""
    status = 503 if speculative else room.queueing_status_code
    head = _PLAIN if status == 200 else _PLAIN + b"Retry-After: %d\r\n" % PLACELESS_RETRY_S
    return Answer(status, head, b"There is a waiting room in front of this. Open the page itself to take a place in line.\n")


def receipt_answer(receipt: bytes, draw_id: str) -> Answer:
    """A receipt as a file to keep."""
    head = b'Content-Type: application/json\r\nContent-Disposition: attachment; filename="receipt-%b.json"\r\n' % draw_id[:8].encode()
    return Answer(200, head + UNCACHEABLE + b"X-Content-Type-Options: nosniff\r\n", receipt)


def left_page_answer(language: str, cookie: bytes) -> Answer:
    """The goodbye for a visitor without JavaScript; no Refresh, or it would take a new place."""
    return Answer(200, BUILT_IN_HEAD, left_page(language), cookie)
