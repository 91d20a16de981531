"""The messages to visitors who want to be called, in their language, naming the site."""

from email.message import EmailMessage
from email.policy import Policy
from email.utils import formatdate
from html import escape
from typing import NamedTuple

import msgspec

from greenroom.calls.web_push import MESSAGE_MAX
from greenroom.model.call import CONFIRM, NOW, RETURNED, VisitorCall
from greenroom.model.offer import Offer, left_of
from greenroom.model.visit import Estimate
from greenroom.outbound.mail import MailServer
from greenroom.pages.brand import Brand
from greenroom.pages.filled import offer_line
from greenroom.pages.language import Language, language

STOCK_MAX = 240
"""Characters; the first offer is always complete."""

LINK_MAX = 950
"""A line of a mail has at most 998 bytes."""


class _Unfolded(str):
    """Keeps `email` from writing a long link as an encoded word, which no mail program follows."""

    name = "List-Unsubscribe"

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


class CallMessage(NamedTuple):
    """`url`: to the place, or to the page that confirms; `stop`: to the one that refuses; `stock`:
    what is left, or empty.
    """

    kind: str
    title: str
    body: str
    url: str
    stop: str
    stop_text: str
    tag: str
    direction: str
    stock: str = ""


def message(
    kind: str,
    call: VisitorCall,
    brand: Brand,
    host: str,
    url: str,
    stop: str,
    estimate: Estimate | None,
    claim_min: int,
    offers: tuple[Offer, ...] = (),
    draws: bool = False,
) -> CallMessage:
    """`draws`: `estimate` is the time until places are drawn among those present."""
    words = language(call.language)
    site = brand.title.removeprefix(" · ") or host
    if kind == CONFIRM:
        heading, body = words.call["add"], words.call["ask"]
    elif kind == NOW:
        heading = words.script["turn"]
        body = words.call["now"].replace("{minutes}", words.number(claim_min))
    elif draws and estimate is not None:
        said_of = words.views["shuffle"]
        heading = said_of["heading"]
        start = said_of["title"].format(start=words.time(-int(-estimate.p50_s // 60)))
        body = f"{start} · {said_of['lead']}"
    else:
        heading = words.call["soon"]
        said = words.unknown
        if estimate is not None:
            said = words.span(int(estimate.p25_s) // 60, -int(-estimate.p75_s // 60))
        body = words.call["wait"].replace("{time}", said)
    if kind == RETURNED:
        heading = words.call["returned"]
    # a header is one line, whatever an operator has written
    title = " ".join(f"{site}: {heading}".split())
    stock = _stock(words, offers) if offers and kind != CONFIRM else ""
    no = words.call["no"]
    return CallMessage(kind, title, body, url, stop, no, words.tag, words.dir, stock)


def _stock(words: Language, offers: tuple[Offer, ...]) -> str:
    if left_of(offers) == 0:
        return words.offers["gone"]
    said = ""
    for number, offer in enumerate(offers):
        more = f"{said}; {offer_line(words, offer)}" if number else offer_line(words, offer)
        if number and len(more) > STOCK_MAX:
            return f"{said} …"
        said = more
    return said


def mail_of(
    message: CallMessage, server: MailServer, to: str, now_ms: int, name: str
) -> EmailMessage:
    """`name`: stays the same when it is sent again."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = server.sender, to, message.title
    mail["Date"] = formatdate(now_ms // 1000)
    mail["Message-ID"] = f"<{name}@{server.domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["Content-Language"] = message.tag
    if len(message.stop) <= LINK_MAX:
        mail["List-Unsubscribe"] = _Unfolded(f"<{message.stop}>")
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    lead = f"{message.stock}\n\n" if message.stock else ""
    mail.set_content(
        f"{lead}{message.body}\n{message.url}\n\n-- \n{message.stop_text}:\n{message.stop}\n",
        cte="quoted-printable",
    )
    url, stop = escape(message.url), escape(message.stop)
    lead = f"<p>{escape(message.stock)}</p>" if message.stock else ""
    mail.add_alternative(
        f'<!doctype html><html lang="{message.tag}" dir="{message.direction}"><body>'
        f"<h1>{escape(message.title)}</h1>{lead}<p>{escape(message.body)}</p>"
        f'<p><a href="{url}">{url}</a></p>'
        f'<p><a href="{stop}">{escape(message.stop_text)}</a></p></body></html>\n',
        subtype="html",
        cte="quoted-printable",
    )
    return mail


def push_body(message: CallMessage) -> bytes:
    """For the page's service worker. Leaves out the offers where they would be too long."""
    body = message.body.rstrip(":：")
    said = {
        "title": message.title,
        "body": f"{body}\n{message.stock}" if message.stock else body,
        "url": message.url,
        "last": message.kind == NOW,
        "lang": message.tag,
        "dir": message.direction,
    }
    encoded = msgspec.json.encode(said)
    return encoded if len(encoded) <= MESSAGE_MAX else msgspec.json.encode(said | {"body": body})
