"""The built-in page, compiled once per language into segments. The same segments make the page and
the `words` of its updates.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from gzip import compress
from hashlib import sha256
from html import escape
from importlib import resources
from math import inf
from typing import Any, NamedTuple

import msgspec

from greenroom.model.visit import Held
from greenroom.pages.brand import NO_BRAND, Brand
from greenroom.pages.filled import Filled, slots_of
from greenroom.pages.language import Language, language
from greenroom.pages.variables import PageVariables, facts_of, iso

_HOLE = re.compile(r"\{([a-z_]+)\}")
_STRING = re.compile(r'("[^"\n]*")')
_SCRIPT_ENDS = "})();"
_SPACES_IN_CSS = re.compile(r"\s*([{};,>~]|(?<=[a-z]):(?= ))\s*")
_SPACES_IN_JS = re.compile(r"\s*([-=+*/<>!&|?:,;{}()\[\]])\s*")

MOMENTS_MAX = 16

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M3 16V7a5 5 0 0 1 10 0v9' fill='%232a8'/%3E%3C/svg%3E"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """`big`: the big thing is a number; `out`: no place to keep or to leave; `end`: nothing to wait
    for either.
    """

    hero: str = ""
    rows: tuple[str, ...] = ()
    looks: str = ""


LAYOUTS: dict[str, Layout] = {
    "fifo": Layout("position", ("ahead", "wait", "change", "first"), "big bar"),
    "drawn": Layout("position", ("ahead", "wait", "change", "first"), "big bar"),
    "random": Layout("span", ("chance", "waiting", "change"), "bar"),
    "placing": Layout(looks="bar"),
    "paused": Layout("position", ("ahead",), "big"),
    "prequeue": Layout("start", ("position", "ahead")),
    "shuffle": Layout("start", ("waiting",)),
    "trouble": Layout("position", ("ahead",), "big"),
    "trouble_slow": Layout("position", ("ahead",), "big"),
    "full": Layout("", ("waiting",), "out"),
    "closed": Layout(looks="end"),
}

READS_TABLE = b"+table"

FORM_GOES_BEFORE = b"<p id=label"

SHARED = frozenset(view for view, layout in LAYOUTS.items() if not layout.hero and not layout.rows)

UNPROVEN = frozenset(("placing", "paused", "prequeue", "shuffle"))
"""The page of these views tests whether the browser keeps cookies."""

ROWS = ("position", "ahead", "wait", "chance", "waiting", "change", "first")
WORDS = ("title", "heading", "lead", "label", "next")
DRAW = ("receipt", "seal", "drawn")


def view_of(held: Held) -> str:
    """queue_all beats the event, the event beats the method."""
    if held.queue_all:
        return "paused"
    if held.event_prequeueing:
        return "shuffle" if held.shuffle_at_event_start else "prequeue"
    if held.method == "reject":
        return "closed"
    if held.storage_failed or held.origin_stops:
        slow = held.origin_stops == "slow" and not held.storage_failed
        return "trouble_slow" if slow else "trouble"
    if not held.in_line:
        return "full" if held.queue_full else "placing"
    if held.method == "random":
        return "random"
    return "drawn" if held.drawn_place else "fifo"


def _minutes_left(facts: PageVariables) -> float:
    """Until the turn, or until places are drawn; at least, where no wait is known."""
    held = facts.held
    if facts.known or held.event_prequeueing or not held.in_line:
        return facts.minutes or (facts.start_minutes if held.shuffle_at_event_start else 0)
    return inf if held.queue_all or held.origin_stops else held.least_minutes


def same_for_all(held: Held) -> bool:
    return not held.in_line and not held.receipt and view_of(held) in SHARED


class PageFeatures(NamedTuple):
    """What the page offers besides the wait. `table`: URL of the wait table, or empty. The last two:
    minutes of median wait beyond which it offers a calendar entry, and a message; 0: never.
    """

    table: str = ""
    offers: bool = False
    moves: bool = False
    calendar_after: int = 0
    call_after: int = 0

    @property
    def may_leave(self) -> bool:
        return bool(self.calendar_after or self.call_after)


PLAIN = PageFeatures()


class BuiltIn:
    def __init__(
        self, words: Language, brand: Brand = NO_BRAND, features: PageFeatures = PLAIN
    ) -> None:
        slots = slots_of(words)
        add = words.calendar["add"].encode()
        slots["calendar",] = lambda facts: (
            add if facts.minutes > features.calendar_after else b"",
        )
        tell, returns = words.call["add"].encode(), words.call["returns"].encode()
        slots["call",] = lambda facts: (
            returns
            if facts.sold_out
            else tell
            if _minutes_left(facts) > features.call_after
            else b"",
        )
        slots["kept",] = lambda facts: (_kept(words, facts.held.away_minutes),)
        draw = Filled(_pieces(source("draw.html"), "drawn", words, brand), slots)
        slots["draw",] = lambda facts: (draw.fill(facts) if facts.held.receipt else b"",)
        self._pages = {
            view: Filled(
                _pieces(source("page.html"), view, words, brand, features=features),
                slots,
            )
            for view in LAYOUTS
        }
        self._words = {
            view: Filled(_pieces(_words_json(view, features), view, words, brand, True), slots)
            for view in LAYOUTS
        }
        self._news: dict[bytes, tuple[str, Filled]] = {}
        for view in LAYOUTS:
            news = (
                view,
                Filled(
                    _pieces(
                        _news_json(view, words, features),
                        view,
                        words,
                        brand,
                        True,
                    ),
                    slots,
                ),
            )
            self._news[view.encode()] = self._news[view.encode() + READS_TABLE] = news
        self._turns = {
            view: Filled(
                _pieces(_turn_json(view, features), view, words, brand, True),
                slots,
            )
            for view in LAYOUTS
        }
        self._shared: dict[tuple[Any, ...], tuple[bytes, bytes]] = {}

    def html(self, held: Held) -> tuple[bytes, bytes]:
        """The page, and a gzip copy (empty for a page of one visitor). A shared page has no
        visitor's data, so its length reveals nothing.
        """
        view = view_of(held)
        if held.in_line or held.receipt or view not in SHARED:
            return self._pages[view].fill(facts_of(held)), b""
        moment = (view, held.next_try_s, held.last_updated_ms // 1000, held.offers)
        found = self._shared.get(moment)
        if found is None:
            if len(self._shared) >= MOMENTS_MAX:
                self._shared.clear()
            page = self._pages[view].fill(facts_of(held))
            found = self._shared[moment] = page, compress(page, mtime=0)
        return found

    def words(self, facts: PageVariables) -> bytes:
        return self._words[view_of(facts.held)].fill(facts)

    def news(self, held: Held, shown: bytes) -> bytes:
        """What is new, or all words where the view changed; empty when `shown` is no view."""
        known = self._news.get(shown)
        if known is None:
            return b""
        view = view_of(held)
        return (known[1] if known[0] == view and not held.receipt else self._turns[view]).fill(
            facts_of(held)
        )


def _pieces(
    source: str,
    view: str,
    words: Language,
    brand: Brand = NO_BRAND,
    json: bool = False,
    features: PageFeatures = PLAIN,
) -> list[str]:
    """Alternating text and names of holes."""
    layout = LAYOUTS[view]
    pieces: list[str] = [""]

    def add(text: str) -> None:
        for index, part in enumerate(_HOLE.split(text)):
            if index % 2 == 0:
                pieces[-1] += part
            elif part in fixed:
                pieces[-1] += fixed[part]
            elif part in texts:
                add(texts[part])
            else:
                pieces.extend((part, ""))

    fixed = _fixed(view, layout, words, brand, features) | {"site": brand.title_in(json)}
    texts = {name: _said(view, words).get(name, "") for name in WORDS}
    texts["title"] += "{site}"
    texts["hero"] = f"{{{layout.hero}}}" if layout.hero else ""
    texts["hero_hidden"] = f"{{{layout.hero}_hidden}}" if layout.hero else " hidden"
    texts["label_hidden"] = "" if layout.hero and texts["label"] else " hidden"  # else by the hero
    if layout.hero == "start":
        texts["label_hidden"] = "{starts_in_hidden}"
    for row in ROWS:
        texts[f"row_{row}"] = f"{{{row}}}" if row in layout.rows else ""
        texts[f"row_{row}_hidden"] = f"{{{row}_hidden}}" if row in layout.rows else " hidden"
    texts |= {"warning": "", "stock": "", "move": _MOVE if features.moves else ""}
    texts["calendar_link"] = _CALENDAR if features.calendar_after else ""
    texts["call_link"] = _CALL if features.call_after else ""
    texts["keep"] = _KEPT if features.may_leave else "{l_keep}"
    if features.offers:
        texts["warning"] = "<p aria-live=polite><b id=short{short_hidden}>{short}</b>"
        title = words.offers["title"]
        texts["stock"] = f"<div{{offers_hidden}}><dt>{title}<dd id=offers>{{offers}}</div>"
    add(source)
    return pieces


def _said(view: str, words: Language) -> Mapping[str, str]:
    # A drawn line is a line, but its visitors do not enter in the order of arrival.
    if view == "drawn":
        return {**words.views["fifo"], "lead": words.draw["lead"]}
    if LAYOUTS[view].hero == "start":
        return {**words.views[view], "title": "{starting}", "label": "{starts_in}"}
    return words.views[view]


def _fixed(
    view: str, layout: Layout, words: Language, brand: Brand, features: PageFeatures
) -> dict[str, str]:
    said = {
        name: text for name, text in words.script.items() if name != "blocked" or view in UNPROVEN
    }
    script = "".join(f' data-{name.replace("_", "-")}="{text}"' for name, text in said.items())
    if brand.title:
        script += f' data-site="{brand.title_in(False)}"'
    if features.moves:
        script += f' data-in-app="{IN_APP}" data-app="{words.move["app"]}"'
    if features.table:
        grouping = "always" if len(words.number(1_234)) > 4 else "min2"
        script += f' data-table="{escape(features.table)}" data-grouping={grouping}'
    return {
        **brand.holes(),
        "help": _help(words, brand),
        "tag": words.tag,
        "dir": words.dir,
        "view": view,
        "layout": layout.looks,
        "icon": _ICON,
        "css": _style(brand),
        "js": _script(bool(features.table)),
        "script": script,
        "again_hidden": "" if layout.looks == "end" else " hidden",
        **{f"l_{name}": text for name, text in words.labels.items()},
        "l_move": words.move["label"],
    }


IN_APP = r"FBAN/|FBAV/|Instagram | Line/|; wv\)"
"""What browsers inside other applications say of themselves, as Meta, LINE and Android document it.
Their cookies are their own. A regular expression for Python and JavaScript.
"""

_MOVE = ' <a id=move href="?greenroom=move" target=_blank>{l_move}</a>'

_CALENDAR = (
    '\u2003<a id=calendar href="?greenroom=calendar" download{calendar_hidden}>{calendar}</a>'
)

_CALL = '\u2003<a id=call href="?greenroom=call"{call_hidden}>{call}</a>'

_KEPT = "<span id=kept>{kept}</span>"

_OFFERS = {"short": "{short}", "offers": "{offers_text}"}
"""Of an update, by element: none where the room has never said what is left."""

_CALENDAR_TEXT, _CALL_TEXT, _KEPT_TEXT = (
    {name: f"{{{name}}}"} for name in ("calendar", "call", "kept")
)

_NEWS = '{"greenroom":{"nextTrySeconds":{next_try},"progress":{progress},"joinedMs":{joined},"updatedMs":{updated},"words":'


_PLACE = '{"greenroom":{"position":{place},'


def _numbers_json(table: bool) -> str:
    return _NEWS.replace('{"greenroom":{', _PLACE) if table else _NEWS


def _news_json(view: str, words: Language, features: PageFeatures) -> str:
    texts = {name: f"{{{name}}}" for name in (*WORDS, "hero")} | {
        row: f"{{row_{row}}}" for row in ROWS
    }
    texts |= _extra_texts(features)
    changing = {name: text for name, text in texts.items() if len(_pieces(text, view, words)) > 1}
    return f"{_numbers_json(bool(features.table))}{msgspec.json.encode(changing).decode()}}}}}"


def _turn_json(view: str, features: PageFeatures) -> str:
    return f"{_numbers_json(bool(features.table))}{_words_json(view, features)}}}}}"


def _extra_texts(features: PageFeatures) -> dict[str, str]:
    return (
        (_OFFERS if features.offers else {})
        | (_CALENDAR_TEXT if features.calendar_after else {})
        | (_CALL_TEXT if features.call_after else {})
        | (_KEPT_TEXT if features.may_leave else {})
    )


def _words_json(view: str, features: PageFeatures) -> str:
    texts = {name: f"{{{name}}}" for name in ("layout", *WORDS, "hero", *DRAW)} | {
        row: f"{{row_{row}}}" for row in ROWS
    }
    texts |= _extra_texts(features)
    return msgspec.json.encode({"view": view, **texts}).decode()


def _kept(words: Language, away_minutes: int) -> bytes:
    """Whether the page has to stay open."""
    if not away_minutes:
        return words.labels["keep"].encode()
    return words.calendar["away"].replace("{minutes}", words.number(away_minutes)).encode()


@lru_cache(None)
def source(name: str) -> str:
    """Minified. Comments stand on lines of their own; the script ends every statement with a
    semicolon.
    """
    text = (resources.files(__package__) / "builtin" / name).read_text("utf-8")
    lines = [
        line for line in map(str.strip, text.splitlines()) if not line.startswith(("//", "/*"))
    ]
    if name.endswith(".html"):
        return "".join(lines)
    signs = _SPACES_IN_CSS if name.endswith(".css") else _SPACES_IN_JS
    parts = enumerate(_STRING.split("\n".join(lines)))
    return "".join(
        part if index % 2 else signs.sub(r"\1", part).replace(";}", "}") for index, part in parts
    )


@lru_cache(64)
def built_in(tag: str, brand: Brand, features: PageFeatures) -> BuiltIn:
    return BuiltIn(language(tag), brand, features)


@lru_cache(None)
def _script(table: bool) -> str:
    if not table:
        return source("page.js")
    return f"{source('page.js').removesuffix(_SCRIPT_ENDS)};{source('table.js')}{_SCRIPT_ENDS}"


def _help(words: Language, brand: Brand) -> str:
    return (
        f'<a id=help href="{brand.help_url}">{words.labels["help"]}</a>' if brand.help_url else ""
    )


def _style(brand: Brand) -> str:
    return source("page.css") + (source("brand.css") + brand.accent if brand != NO_BRAND else "")


@lru_cache(256)
def alone(
    name: str,
    tag: str,
    href: str | None = None,
    after: str = "",
    brand: Brand = NO_BRAND,
    safe_ms: int = 0,
) -> bytes:
    """A separate page that works without a script; one link unless `href` is None."""
    words = language(tag)
    texts = words.alone[name]
    lead = f"{texts['lead']} {words.alone[after]}" if after else texts["lead"]
    link = f'<a href="{href}">{texts["link"]}</a>' if href is not None else ""
    link += _help(words, brand)
    block = link and f"<div id=acts>{link}</div>"
    if safe_ms:
        said = iso(safe_ms // 60_000 * 60_000)
        time = f'<time datetime="{said}">{said[11:16]} UTC</time>'
        safe = words.alone["safe"].format(time=time)
        block = f"<p id=notice>{safe}</p>{block}<script>{source('safe.js')}</script>"
    return alone_page(words, brand, {**texts, "lead": lead}, block)


def alone_page(words: Language, brand: Brand, texts: Mapping[str, str], block: str) -> bytes:
    fixed = {
        "tag": words.tag,
        "dir": words.dir,
        "icon": _ICON,
        "css": _style(brand),
        "link": block,
    }
    fixed |= {
        **brand.holes(),
        "title": texts["title"] + brand.title_in(False),
        "heading": texts["heading"],
        "lead": texts["lead"],
    }
    return _HOLE.sub(lambda hole: fixed[hole[1]], source("alone.html")).encode()


def hash_of(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def content_security_policy(brand: Brand = NO_BRAND, table: bool = False, script: str = "") -> str:
    return (
        f"default-src 'none'; script-src 'sha256-{hash_of(script or _script(table))}'; style-src"
        f" 'sha256-{hash_of(_style(brand))}'; connect-src 'self'; worker-src blob:; img-src data:;"
        " base-uri 'none'; form-action 'self'"
    )


CONTENT_SECURITY_POLICY = content_security_policy()
