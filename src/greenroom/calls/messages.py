"""What a visitor who wants to be called is sent, in the visitor's language, naming the site."""

from email.message import EmailMessage
from email.policy import Policy
from email.utils import formatdate, make_msgid
from html import escape
from typing import NamedTuple

import msgspec

from greenroom.model.call import CONFIRM, NOW, VisitorCall
from greenroom.model.visit import Estimate
from greenroom.outbound.mail import MailServer
from greenroom.pages.brand import Brand
from greenroom.pages.language import language

LINK_MAX = 950
"""A line of a mail has at most 998 bytes."""


class _Unfolded(str):
    """A header as `email` keeps them; it would write a long link as an encoded word, which no mail
    program follows.
    """

    name = "List-Unsubscribe"

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


class CallMessage(NamedTuple):
    """`url`: to the place, or to the page that confirms; `stop`: to the one that refuses."""

    kind: str
    title: str
    body: str
    url: str
    stop: str
    stop_text: str
    tag: str
    direction: str


def message(
    kind: str,
    call: VisitorCall,
    brand: Brand,
    host: str,
    url: str,
    stop: str,
    estimate: Estimate | None,
    claim_min: int,
) -> CallMessage:
    words = language(call.language)
    site = brand.title.removeprefix(" · ") or host
    if kind == CONFIRM:
        heading, body = words.call["add"], words.call["ask"]
    elif kind == NOW:
        heading = words.script["turn"]
        body = words.call["now"].replace("{minutes}", words.number(claim_min))
    else:
        heading = words.call["soon"]
        said = words.unknown
        if estimate is not None:
            said = words.span(int(estimate.p25_s) // 60, -int(-estimate.p75_s // 60))
        body = words.call["wait"].replace("{time}", said)
    # a header is one line, whatever an operator has written
    title = " ".join(f"{site}: {heading}".split())
    return CallMessage(kind, title, body, url, stop, words.call["no"], words.tag, words.dir)


def mail_of(message: CallMessage, server: MailServer, to: str, now_ms: int) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = server.sender, to, message.title
    mail["Date"] = formatdate(now_ms // 1000)
    mail["Message-ID"] = make_msgid(domain=server.domain)
    mail["Auto-Submitted"] = "auto-generated"
    mail["Content-Language"] = message.tag
    if len(message.stop) <= LINK_MAX:
        mail["List-Unsubscribe"] = _Unfolded(f"<{message.stop}>")
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail.set_content(
        f"{message.body}\n{message.url}\n\n-- \n{message.stop_text}:\n{message.stop}\n",
        cte="quoted-printable",
    )
    url, stop = escape(message.url), escape(message.stop)
    mail.add_alternative(
        f'<!doctype html><html lang="{message.tag}" dir="{message.direction}"><body>'
        f"<h1>{escape(message.title)}</h1><p>{escape(message.body)}</p>"
        f'<p><a href="{url}">{url}</a></p>'
        f'<p><a href="{stop}">{escape(message.stop_text)}</a></p></body></html>\n',
        subtype="html",
        cte="quoted-printable",
    )
    return mail


def push_body(message: CallMessage) -> bytes:
    """For the worker of the page."""
    said = {
        "title": message.title,
        "body": message.body.rstrip(":："),
        "url": message.url,
        "last": message.kind == NOW,
        "lang": message.tag,
        "dir": message.direction,
    }
    return msgspec.json.encode(said)
