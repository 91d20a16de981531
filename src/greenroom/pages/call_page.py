"""The page where a waiting visitor asks to be notified, and the pages behind links in its mails."""

from functools import lru_cache
from html import escape

import msgspec

from greenroom.model.answer import AnswerHeaders
from greenroom.model.call import TRAVEL_MINUTES
from greenroom.pages.brand import Brand
from greenroom.pages.builtin import alone_page, content_security_policy, hash_of, source
from greenroom.pages.language import language
from greenroom.pages.move_page import button

STATES = ("on", "check", "off", "many", "invalid", "gone")
"""What the page says; `many`: too often from there."""


def call_page(
    tag: str,
    brand: Brand,
    claim_min: int,
    state: str,
    email: bool,
    key: str,
    vapid: str,
    draws: bool,
) -> bytes:
    """`state`: that of the visitor's row, or empty. `key`: for push, with its id `vapid`. `draws`:
    the places are still to be drawn.
    """
    words = language(tag)
    said = words.call
    times = "".join(
        f"<option value={minutes}>{words.time(minutes)}</option>" for minutes in TRAVEL_MINUTES
    )
    travel = f"<p><label>{said['travel']} <select id=travel>{times}</select></label></p>"
    push = f"<p><button id=push hidden>{said['push']}</button></p>" if key else ""
    address = (
        f"<form id=mail><p><label>{said['email']} <input id=to type=email required"
        f" autocomplete=email maxlength=254></label></p><button>{said['send']}</button></form>"
    )
    stop = f"<p><button id=stop{'' if state else ' hidden'}>{said['stop']}</button></p>"
    script = "".join(
        f' data-{name}="{escape(text)}"'
        for name, text in (("key", key), ("vapid", vapid), ("invalid", said["invalid"]))
    )
    block = (
        f"<p id=notice aria-live=polite{'' if state else ' hidden'}>{said.get(state, '')}</p>"
        f"<div id=ask hidden{script}>{travel}{push}{address if email else ''}{stop}</div>"
        f"<p id=plain>{said['script']}</p>"
        f"<p>{said['kept']}</p>"
        f"{'<p>' + words.views['shuffle']['lead'] + '</p>' if draws else ''}"
        f'<p><a href="?">{said["back"]}</a></p>'
        f"<style>{source('call.css')}</style><script>{source('call.js')}</script>"
    )
    lead = said["lead"].replace("{minutes}", words.number(claim_min))
    return alone_page(
        words, brand, {"title": said["add"], "heading": said["add"], "lead": lead}, block
    )


def call_page_headers(headers: AnswerHeaders, brand: Brand) -> AnswerHeaders:
    """As `headers_of`, with a policy for this page's script and its worker."""
    return _with_policy(headers, brand)


def call_json(tag: str, state: str, email: bool = False, key: str = "", vapid: str = "") -> bytes:
    """`state` empty: nothing was asked for yet."""
    said = {"state": state or "none", "text": language(tag).call.get(state, "")}
    offered = {"email": email, "key": key, "vapid": vapid} if state not in STATES or key else {}
    return msgspec.json.encode({"greenroom": {"call": said | offered}})


def worker_script() -> bytes:
    return source("worker.js").encode()


def ask_page(tag: str, brand: Brand, action: str, refuses: bool) -> bytes:
    """Behind a mail's link: asks whether messages may go to this address."""
    said = language(tag).call
    yes = "" if refuses else button(action, said["yes"])
    texts = {"title": said["add"], "heading": said["add"], "lead": said["ask"]}
    return alone_page(language(tag), brand, texts, yes + button(f"{action}.stop", said["no"]))


def answer_page(tag: str, brand: Brand, state: str) -> bytes:
    said = language(tag).call
    texts = {"title": said["add"], "heading": said["add"], "lead": said[state]}
    return alone_page(language(tag), brand, texts, "")


@lru_cache(maxsize=256)
def _with_policy(headers: AnswerHeaders, brand: Brand) -> AnswerHeaders:
    name = b"Content-Security-Policy"
    own = content_security_policy(brand, script=source("call.js"))
    style = f"style-src 'sha256-{hash_of(source('call.css'))}' "
    policy = (
        own.replace("style-src ", style).replace("worker-src blob:", "worker-src 'self'").encode()
    )
    usual = content_security_policy(brand).encode()
    return AnswerHeaders(
        *[
            (key, value.replace(usual, policy) if key == name else value)
            for key, value in headers.pairs
        ]
    )
