"""A status page as HTML without scripts, as JSON, and as an Atom feed."""

import base64
import hashlib
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Any

from greenroom.model.fields import with_unit
from greenroom.status_page.view import Day, NoteFacts, StatusLine, StatusView, Story, moment

STYLE = files("greenroom.status_page").joinpath("page.css").read_text()
CSP = "; ".join(
    (
        "default-src 'none'",
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

REFRESH_S = 60


def html(found: StatusView, feed: str, data: str, *, refreshes: bool = True) -> str:
    refresh = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if refreshes else ""
    lines = "".join(map(_line, found.lines)) or '<li class="soft">Nothing is shown here yet.</li>'
    going_on = [story for story in found.stories if story.open]
    past = [story for story in found.stories if not story.open]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width, initial-scale=1">'
        f"{refresh}<title>{escape(found.title)}: {escape(found.words)}</title>"
        f'<link rel="alternate" type="application/atom+xml" title="{escape(found.title)}"'
        f' href="{escape(feed)}">'
        f"<style>{STYLE}</style></head><body><main><h1>{escape(found.title)}</h1>"
        f'<div class="banner {found.state}" role="status">{escape(found.words)}</div>'
        f"{_stories('Happening now', going_on)}<h2>Now</h2><ul>{lines}</ul>"
        f"{_stories('Last 90 days', past)}"
        f'<p class="soft">As of {moment(found.now_ms)}. <a href="{escape(feed)}">Feed</a> · <a'
        f' href="{escape(data)}">JSON</a></p>'
        "</main></body></html>\n"
    )


def _line(line: StatusLine) -> str:
    facts = []
    if line.uptime is not None:
        facts.append(f"{_percent(line.uptime)} uptime {_period(line)}")
    if line.response_ms is not None:
        facts.append(f"responds in {line.response_ms} ms")
    below = f'<div class="soft">{escape(", ".join(facts))}</div>' if facts else ""
    bars = _bars(line.days, line.name) if line.days else ""
    head = (
        f'<div class="row"><h3>{escape(line.name)}</h3><span'
        f' class="words">{escape(line.words)}</span></div>'
    )
    return f'<li class="{line.state}">{head}{bars}{below}</li>'


def _period(line: StatusLine) -> str:
    """The known days: a new check has not worked for 90."""
    if line.since == line.days[0].day:
        return f"in {with_unit(len(line.days), 'days')}"
    if line.since == line.days[-1].day:
        return "today"
    return f"since {datetime.fromisoformat(line.since):%-d %B %Y}"


def _bars(days: tuple[Day, ...], name: str) -> str:
    bars = "".join(
        f'<rect x="{index * 4}" width="3" height="32"{_bar_class(day)}><title>{day.day}:'
        f" {_day_words(day)}</title></rect>"
        for index, day in enumerate(days)
    )
    label = escape(f"{name}, each of the last {len(days)} days")
    return (
        f'<svg viewBox="0 0 {len(days) * 4} 32" preserveAspectRatio="none" role="img"'
        f' aria-label="{label}">{bars}</svg>'
    )


def _bar_class(day: Day) -> str:
    if day.part is None:
        return ""
    return f' class="d{3 if day.part >= 0.999 else 2 if day.part >= 0.95 else 1}"'


def _day_words(day: Day) -> str:
    return "no information" if day.part is None else _percent(day.part)


def _percent(part: float) -> str:
    """Only what never failed has 100 %."""
    return f"{int(part * 10_000) / 100:g} %"


def _stories(heading: str, stories: list[Story]) -> str:
    if not stories:
        return ""
    return f"<h2>{heading}</h2><ul>{''.join(map(_story, stories))}</ul>"


def _story(story: Story) -> str:
    notes = "".join(
        f'<p>{escape(note.text)}</p><div class="soft">{moment(note.at_ms)}</div>'
        for note in story.notes
    )
    state = "bad" if story.open else "good"
    span = "" if story.message else f'<div class="soft">{escape(_span(story))}</div>'
    return f'<li class="{state}"><h3>{escape(story.title)}</h3>{span}{notes}</li>'


def _span(story: Story) -> str:
    began = moment(story.began_ms)
    if story.open:
        return f"Since {began}"
    if story.ended_ms is None or story.ended_ms == story.began_ms:
        return began
    minutes = max(1, (story.ended_ms - story.began_ms) // 60_000)
    lasted = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"{began}, for {lasted}"


def document(found: StatusView) -> dict[str, Any]:
    return {
        "title": found.title,
        "status": found.state,
        "description": found.words,
        "updated_at": _time(found.now_ms),
        "components": [
            {
                "name": line.name,
                "status": line.state,
                "description": line.words,
                "uptime_90_days": line.uptime,
                "uptime_since": line.since or None,
                "response_time_ms": line.response_ms,
                "days": [{"date": day.day, "uptime": day.part} for day in line.days],
            }
            for line in found.lines
        ],
        "incidents": [
            {
                "id": story.id,
                "title": story.title,
                "started_at": _time(story.began_ms),
                "ended_at": None if story.ended_ms is None else _time(story.ended_ms),
                "notes": [_note(note) for note in story.notes],
            }
            for story in found.stories
        ],
    }


def _note(note: NoteFacts) -> dict[str, str]:
    return {"text": note.text, "at": _time(note.at_ms)}


def atom(found: StatusView, page: str, feed: str) -> str:
    entries = "".join(
        f"<entry><id>{escape(f'{page}#{story.id}')}</id><title>{escape(story.title)}</title><updated>{_time(story.updated_ms)}</updated>"
        f"<published>{_time(story.began_ms)}</published>"
        f'<link href="{escape(page)}"/><content'
        f' type="text">{escape(_clean(_told(story)))}</content></entry>'
        for story in found.stories
    )
    updated = max([story.updated_ms for story in found.stories], default=0)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed'
        f' xmlns="http://www.w3.org/2005/Atom"><id>{escape(page)}</id><title>{escape(_clean(found.title))}</title><updated>{_time(updated)}</updated><author><name>{escape(_clean(found.title))}</name></author><link'
        f' rel="self" href="{escape(feed)}"/><link href="{escape(page)}"/>{entries}</feed>\n'
    )


def _told(story: Story) -> str:
    return "\n\n".join(
        [_span(story), *(f"{moment(note.at_ms)}: {note.text}" for note in story.notes)]
    )


def _clean(text: str) -> str:
    return "".join(
        each for each in text if each in "\t\n\r" or (each >= " " and each not in "\ufffe\uffff")
    )


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
