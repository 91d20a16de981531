"""The remaining session time of an active visitor, as a page, as JSON and as a script for the
application's own pages. The page works without a script, also in a frame of the same site.
"""

import msgspec

from greenroom.pages.brand import Brand
from greenroom.pages.builtin import alone_page, source
from greenroom.pages.language import Language, language
from greenroom.pages.variables import iso

WARN_S = 150
"""The warning comes two minutes before the end, also when a timer is late."""


def warn_s(session_ms: int) -> int:
    """At most half of the session."""
    return min(WARN_S, session_ms // 2_000)


def refresh_s(left_s: int, session_ms: int) -> int:
    """When the page changes."""
    return left_s - warn_s(session_ms) if left_s > warn_s(session_ms) else left_s + 1


def session_page(tag: str, brand: Brand, left_s: int | None, session_ms: int, last: bool) -> bytes:
    """`left_s` None: the session is over. `last`: a press has not added a whole session."""
    words = language(tag)
    if left_s is None:
        texts = {"title": words.session["over"], "heading": words.session["over"], "lead": ""}
        return alone_page(words, brand, texts, "")
    soon = left_s <= warn_s(session_ms)
    said = [words.session["soon"]] * soon + [words.session["last"]] * last
    texts = {
        "title": words.session["soon"] if soon else _left(words, left_s),
        "heading": _left(words, left_s),
        "lead": "",
    }
    alert = f"<p id=notice role=alert>{' '.join(said)}</p>" if said else ""
    press = (
        '<form method=post action="?greenroom=session">'
        f"<button>{words.session['more']}</button></form>"
    )
    return alone_page(words, brand, texts, alert + press)


def session_json(tag: str, left_s: int | None, ends_ms: int, session_ms: int, last: bool) -> bytes:
    words = language(tag)
    said = {name: words.session[name] for name in ("more", "given", "last", "over")}
    if left_s is None:
        session: dict[str, object] = {"over": True}
    else:
        said["soon"] = f"{words.session['soon']} {_left(words, left_s)}"
        session = {
            "ends": iso(ends_ms),
            "secondsLeft": left_s,
            "warnSeconds": warn_s(session_ms),
            "all": not last,
        }
    return msgspec.json.encode({"greenroom": {"session": session | {"words": said}}})


def session_script() -> bytes:
    return source("session.js").encode()


def _left(words: Language, left_s: int) -> str:
    return words.session["left"].format(time=words.time(max(1, round(left_s / 60))))
