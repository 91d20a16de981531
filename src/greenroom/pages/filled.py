"""Fills visitors' values into texts compiled per language."""

from collections.abc import Callable
from functools import lru_cache
from html import escape
from itertools import repeat
from operator import itemgetter

import msgspec

from greenroom.model.offer import Offer
from greenroom.pages.language import Language
from greenroom.pages.variables import SECONDS_KEPT, PageVariables, chance_per_try, iso_second

ReadTexts = Callable[[PageVariables], tuple[bytes, ...]]
Slots = dict[tuple[str, ...], ReadTexts]

_IF_EMPTY, _ELSE = {b"": b" hidden"}.get, repeat(b"")

LANGUAGES_MAX = 64

SAID_MAX = 4_096

FORM_MAX = 1_000
"""Longer texts are joined: they would be moved each time the buffer grows."""

OFFERS_KEPT = 64
"""Per language: rooms that say what is left, before and after a change."""

ABOUT = "≈\N{NO-BREAK SPACE}".encode()

THOUSAND, THOUSAND_FROM = 1_000, 10_000
"""From the second on every language divides a number before its last three digits."""


class Filled:
    """Segments with holes, filled with the slot's text, or ` hidden` when empty."""

    __slots__ = ("_form", "_hiding", "_pick", "_pieces", "_reads")

    def __init__(self, pieces: list[str], slots: Slots) -> None:
        """`pieces` alternate: fixed text, then the name of a hole."""
        holes = pieces[1::2]
        shown = {name.removesuffix("_hidden") for name in holes}
        needed = {names: read for names, read in slots.items() if not shown.isdisjoint(names)}
        read = [name for names in needed for name in names]
        hiding = list(dict.fromkeys(name for name in holes if name.endswith("_hidden")))
        self._pieces = [b"" if index % 2 else piece.encode() for index, piece in enumerate(pieces)]
        fixed = b"%b".join([piece.replace(b"%", b"%%") for piece in self._pieces[::2]])
        self._form = fixed if len(fixed) <= FORM_MAX else b""
        self._reads = tuple(needed.values())
        self._hiding = (
            _picker([read.index(name.removesuffix("_hidden")) for name in hiding])
            if hiding
            else None
        )
        self._pick = _picker([(read + hiding).index(name) for name in holes])

    def fill(self, facts: PageVariables) -> bytes:
        texts: list[bytes] = []
        for read in self._reads:
            texts += read(facts)
        if self._hiding is not None:
            texts.extend(map(_IF_EMPTY, self._hiding(texts), _ELSE))
        pick = self._pick
        if self._form:
            return self._form % pick(texts)
        pieces = self._pieces.copy()
        pieces[1::2] = pick(texts)
        return b"".join(pieces)


def _picker(places: list[int]) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda texts: tuple(texts[place] for place in places)


def slots_of(words: Language) -> Slots:
    """Every text is safe in HTML, attributes and JSON."""
    unknown = words.unknown.encode()
    says = (words.at_most, words.at_least, words.span, words.time)
    wait, least, span, time = (lru_cache(SAID_MAX)(_in_bytes(say)) for say in says)
    number, clock = numbers_in(words), _clock_in(words)
    first, views = words.labels["first"].encode(), words.views["prequeue"]
    changes = {name: text.encode() for name, text in words.changes.items()}

    def times(f: PageVariables) -> tuple[bytes, ...]:
        held, progress = f.held, f.progress
        joined = b"%d" % held.joined_ms if held.in_line else b"0"
        return b"%d" % held.next_try_s, b"%d" % held.last_updated_ms, b"%d" % progress, joined

    def place(f: PageVariables) -> tuple[bytes, ...]:
        held = f.held
        position, change = held.position, changes.get(f.change, b"")
        said = wait(f.minutes, f.most) if f.known else least(held.least_minutes)
        if position <= 0:
            return b"", b"", said, change, b""
        if held.about:
            return ABOUT + number(position), ABOUT + number(held.ahead), said, change, b""
        return number(position), number(held.ahead), said, change, first if position == 1 else b""

    def start(f: PageVariables) -> tuple[bytes, ...]:
        held = f.held
        # A time that stays on the page until after the start would be wrong there.
        if held.now_ms + held.next_try_s * 1000 >= held.event_start_ms:
            return b"", b"", views["heading"].encode()
        said = time(f.start_minutes)
        title = views["title"].format(start=said.decode())
        return said, views["label"].encode(), title.encode()

    return {
        ("next_try", "updated", "progress", "joined"): times,
        ("position", "ahead", "wait", "change", "first"): place,
        ("place",): lambda f: (b"%d" % f.held.position,),
        ("span",): lambda f: (span(f.p25, f.p75) if f.known else unknown,),
        ("chance",): lambda f: (words.chance(chance_per_try(f.held)).encode(),),
        ("waiting",): lambda f: (number(f.held.waiting) if f.held.waiting > 0 else b"",),
        ("start", "starts_in", "starting"): start,
        ("receipt",): lambda f: (f.held.receipt.encode(),),
        ("seal",): lambda f: (f.held.draw_commitment.encode(),),
        ("drawn",): lambda f: (
            words.drawn(f.held.drawn_place, f.held.drawn_size).encode()
            if f.held.drawn_place
            else b"",
        ),
        ("offers", "offers_text", "short"): offers_in(words),
        ("value",): lambda f: (b" value=%d" % f.progress if f.progress >= 0 else b"",),
        ("clock",): lambda f: (clock(f.held.last_updated_ms // 1000),),
    }


def offers_in(words: Language) -> ReadTexts:
    """What is left and since when, as lines in HTML and in JSON; what it means to this visitor."""
    short, gone = words.offers["short"].encode(), words.offers["gone"].encode()

    def texts_of(offers: tuple[Offer, ...]) -> tuple[bytes, bytes]:
        lines = [offer_line(words, offer) for offer in offers]
        as_of_s = min(offer.as_of_ms for offer in offers) // 1000
        said = iso_second(as_of_s)[:16].replace("T", " ")
        lines.append(f"{words.labels['updated']}: {words.clock.format(clock=said)}")
        text = "\n".join(lines)
        return escape(text).encode(), msgspec.json.encode(text)[1:-1]

    texts = lru_cache(OFFERS_KEPT)(texts_of)  # a decorator here is lost in compiled code

    def read(f: PageVariables) -> tuple[bytes, ...]:
        offers = f.held.offers
        if not offers:
            return b"", b"", b""
        return *texts(offers), gone if f.sold_out else short if f.outnumbered else b""

    return read


def offer_line(words: Language, offer: Offer) -> str:
    """`Stalls: €45 to €95 · few left`."""
    left = offer.left
    said = (
        words.offers["number"].format(n=words.number(left))
        if left
        else words.offers["none" if left == 0 else offer.available]
    )
    return f"{offer.name}: {f'{offer.price} · ' if offer.price else ''}{said}"


def _clock_in(words: Language) -> Callable[[int], bytes]:
    """Unix seconds as `time` elements show them, without the beginning."""

    def clock(unix_s: int) -> bytes:
        said = iso_second(unix_s)
        return f"datetime={said}Z>{words.clock.format(clock=said[11:])}".encode()

    return lru_cache(SECONDS_KEPT)(clock)


@lru_cache(LANGUAGES_MAX)
def numbers_in(words: Language) -> Callable[[int], bytes]:
    """A list, because neighbours in line need different numbers."""
    small = [b""] * THOUSAND_FROM
    thousands = lru_cache(SAID_MAX)(lambda count: words.number(count * THOUSAND)[:-3].encode())
    ends = [words.number(THOUSAND_FROM + end)[-3:].encode() for end in range(THOUSAND)]

    def said(number: int) -> bytes:
        if number >= THOUSAND_FROM:
            return thousands(number // THOUSAND) + ends[number % THOUSAND]
        known = small[number] if number >= 0 else b""
        if not known:
            known = words.number(number).encode()
            if number >= 0:
                small[number] = known
        return known

    return said


def _in_bytes(say: Callable[..., str]) -> Callable[..., bytes]:
    return lambda *minutes: say(*minutes).encode()
