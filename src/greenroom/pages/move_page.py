"""Pages about continuing on another device. They work without a script."""

from datetime import UTC, datetime
from html import escape

import msgspec

from greenroom.pages.brand import Brand
from greenroom.pages.builtin import alone_page
from greenroom.pages.language import language

MOVED_JSON = b'{"greenroom":{"moved":true}}'


def link_page(tag: str, brand: Brand, url: str, in_app: bool = False) -> bytes:
    """The link, as a QR code too. `in_app`: for the visitor's own browser, so without the code."""
    link = f'<p id=seal><a href="{escape(url)}">{escape(url)}</a></p>'
    if in_app:
        return _page(tag, brand, "app", "app_lead", link)
    import segno  # a page that few visitors see

    words = language(tag).move
    picture = segno.make(url, error="m", micro=False).svg_data_uri(
        scale=4, border=4, dark="#000", light="#fff"
    )
    shown = f'<p><img src="{escape(picture)}" alt="{words["label"]}"></p>'
    return _page(tag, brand, "label", "scan", shown + link)


def link_json(url: str, until_ms: int) -> bytes:
    until = datetime.fromtimestamp(until_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return msgspec.json.encode({"greenroom": {"move": {"url": url, "until": until}}})


def confirm_page(tag: str, brand: Brand, action: str, has_own: bool) -> bytes:
    warning = f"<p id=notice>{language(tag).move['own']}</p>" if has_own else ""
    return _page(tag, brand, "here", "ask", warning + button(action, language(tag).move["here"]))


def moved_page(tag: str, brand: Brand) -> bytes:
    return _page(
        tag, brand, "moved", "moved_lead", button("?greenroom=move", language(tag).move["back"])
    )


def notice_page(tag: str, brand: Brand) -> bytes:
    """The code was used, or is too old, or was never one."""
    return _page(tag, brand, "used", "used_lead", "")


def button(action: str, text: str) -> str:
    return f'<form method=post action="{escape(action)}"><button>{text}</button></form>'


def _page(tag: str, brand: Brand, heading: str, lead: str, block: str) -> bytes:
    words = language(tag)
    texts = {"title": words.move[heading], "heading": words.move[heading], "lead": words.move[lead]}
    return alone_page(words, brand, texts, block)
