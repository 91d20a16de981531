"""A calendar entry (RFC 5545) with the interval of the estimated wait and a link back; nothing is
stored.
"""

from greenroom.model.visit import Estimate
from greenroom.pages.brand import Brand
from greenroom.pages.language import language
from greenroom.pages.variables import WAIT_MAX_S, iso_second

SHORTEST_S = 300
"""Calendars show shorter entries as a line."""

ALARM = "-PT10M"
LINE_OCTETS = 75


def calendar_entry(
    tag: str,
    brand: Brand,
    host: str,
    uid: str,
    url: str,
    estimate: Estimate,
    now_ms: int,
    claim_min: int = 0,
) -> bytes:
    """`uid`: the same for each entry of one place, so that a later one replaces it. `claim_min`:
    how long the place waits after its turn; 0: the page has to stay open.
    """
    words, now_s = language(tag), now_ms // 1000
    starts_s, ends_s = (int(min(wait, WAIT_MAX_S)) for wait in (estimate.p25_s, estimate.p75_s))
    ends_s = max(ends_s, starts_s + SHORTEST_S)
    turn, site = words.script["turn"], brand.title.removeprefix(" · ") or host
    note = words.calendar["note"]
    if claim_min:
        note = words.calendar["away"].replace("{minutes}", words.number(claim_min))
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//greenroom//waiting room//EN",
        "BEGIN:VEVENT",
        f"UID:{uid}",
        f"DTSTAMP:{_time(now_s)}",
        f"SEQUENCE:{now_s}",
        f"DTSTART:{_time(now_s + starts_s)}",
        f"DTEND:{_time(now_s + ends_s)}",
        f"SUMMARY:{_text(f'{site}: {turn}')}",
        "DESCRIPTION:" + _text(note + "\n" + url),
        f"URL:{url}",
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        f"DESCRIPTION:{_text(f'{site}: {turn}')}",
        f"TRIGGER:{ALARM}",
        "END:VALARM",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    )
    return b"\r\n".join(_folded(line) for line in lines)


def _time(unix_s: int) -> str:
    return f"{iso_second(unix_s).replace('-', '').replace(':', '')}Z"


def _text(text: str) -> str:
    for sign in "\\;,":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", "\\n")


def _folded(line: str) -> bytes:
    """Lines of at most LINE_OCTETS, each cut between two characters."""
    folded, used = "", 0
    for character in line:
        size = len(character.encode())
        if used + size > LINE_OCTETS:
            folded, used = f"{folded}\r\n ", 1
        folded, used = folded + character, used + size
    return folded.encode()
