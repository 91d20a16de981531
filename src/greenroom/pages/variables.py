"""Variables of a held visitor's page and JSON, one row each. Seconds are rounded UP to whole
minutes, so no visitor is promised less than the estimate. Infinite and NaN estimates are unknown.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec

from greenroom.model.fields import with_unit
from greenroom.model.offer import Offer, fewer_than, left_of
from greenroom.model.visit import Estimate, Held

WAIT_MINUTES_MAX = 525_600
"""A year."""

WAIT_MAX_S = WAIT_MINUTES_MAX * 60

LAST_S = 253_402_300_799
"""The end of 9999."""

SECONDS_KEPT = 4_096

PROGRESS_MAX = 99

Value = bool | int | str


class PageVariables(msgspec.Struct, frozen=True, gc=False):
    """`p25`, `p50` and `p75` are 0 unless random, as published."""

    held: Held
    known: bool
    minutes: int
    most: int  # 0 = not known
    change: str
    start_minutes: int
    end_minutes: int
    progress: int  # -1 = unknown

    @property
    def sold_out(self) -> bool:
        return bool(self.held.offers) and left_of(self.held.offers or ()) == 0

    @property
    def outnumbered(self) -> bool:
        """The people ahead would take everything that is left, one each."""
        return bool(self.held.offers) and fewer_than(self.held.offers or (), self.held.ahead)

    @property
    def low(self) -> int:
        return _minutes(self.held.estimate.p25_s) if self.known and self.held.estimate else 0

    @property
    def high(self) -> int:
        return _minutes(self.held.estimate.p75_s) if self.known and self.held.estimate else 0

    @property
    def p25(self) -> int:
        return self.low if self.held.method == "random" else 0

    @property
    def p50(self) -> int:
        return self.minutes if self.held.method == "random" else 0

    @property
    def p75(self) -> int:
        return self.high if self.held.method == "random" else 0


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    kind: Literal["boolean", "integer", "string"]
    read: Callable[[PageVariables], Value]
    help: str
    template_only: bool = False

    @property
    def template_name(self) -> str:
        """Dotted lookups are refused."""
        return f"greenroom{self.name[0].upper()}{self.name[1:]}"


def facts_of(held: Held) -> PageVariables:
    """Under queue_all the wait is unknown."""
    estimate = usable_estimate(held) if held.estimate is not None else None
    minutes = most = start = end = 0
    progress, change = -1, ""
    if estimate is not None:
        p50_s = estimate.p50_s
        minutes, most, change = _minutes(p50_s), _minutes(estimate.most_s), estimate.change
        if held.method != "random" and held.joined_ms and held.in_line:
            waited_ms = held.now_ms - held.joined_ms
            progress = _progress(
                waited_ms / 1000 if waited_ms > 0 else 0.0, p50_s if p50_s > 0.0 else 0.0
            )
    if held.event_active or held.event_prequeueing:
        start = (
            _minutes((held.event_start_ms - held.now_ms) / 1000) if held.event_prequeueing else 0
        )
        end = _minutes((held.event_end_ms - held.now_ms) / 1000) if held.event_active else 0
    return PageVariables(held, estimate is not None, minutes, most, change, start, end, progress)


def usable_estimate(held: Held) -> Estimate | None:
    """None: none given, queue_all, or not finite."""
    estimate = held.estimate
    if (
        estimate is None
        or held.queue_all
        or held.origin_stops
        or not math.isfinite(estimate.p25_s + estimate.p50_s + estimate.p75_s + estimate.most_s)
    ):
        return None
    return estimate


def _progress(waited_s: float, remaining_s: float) -> int:
    whole_s = waited_s + remaining_s
    percent = int(100 * waited_s / whole_s) if whole_s else PROGRESS_MAX
    return percent if percent < PROGRESS_MAX else PROGRESS_MAX


def chance_per_try(held: Held) -> float:
    """For one try in a random room; 0: unknown."""
    estimate = usable_estimate(held)
    if estimate is None or held.refresh_s <= 0:
        return 0.0
    return float(1 - 0.5 ** (held.refresh_s / max(estimate.p50_s, 0.001)))


def _minutes(seconds: float) -> int:
    if seconds <= 0:
        return 0
    return -(-int((seconds if seconds < WAIT_MAX_S else WAIT_MAX_S) * 1000 + 0.5) // 60_000)


def iso(unix_ms: int) -> str:
    return f"{iso_second(unix_ms // 1000)}.{unix_ms % 1000:03d}Z"


@lru_cache(SECONDS_KEPT)
def iso_second(unix_s: int) -> str:
    """Times outside 1970 to 9999 are clamped."""
    return datetime.fromtimestamp(min(max(unix_s, 0), LAST_S), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def in_english(minutes: int) -> str:
    """The *Formatted variables, always English."""
    hours, rest = divmod(minutes, 60)
    if not hours:
        return with_unit(rest, "minutes")
    return (
        f"{with_unit(hours, 'hours')} and {with_unit(rest, 'minutes')}"
        if rest
        else with_unit(hours, "hours")
    )


def _wait_formatted(facts: PageVariables) -> str:
    if not facts.known:
        return "unavailable"
    if facts.held.method == "random" and facts.p25 != facts.p75:
        return f"{in_english(facts.p25)} to {in_english(facts.p75)}"
    return in_english(facts.minutes)


def _start_formatted(facts: PageVariables) -> str:
    return in_english(facts.start_minutes) if facts.held.event_prequeueing else "unavailable"


def _end_formatted(facts: PageVariables) -> str:
    return in_english(facts.end_minutes) if facts.held.event_active else "unavailable"


def _wait_at_least(facts: PageVariables) -> int:
    return (
        0
        if facts.known or facts.held.queue_all or facts.held.origin_stops
        else facts.held.least_minutes
    )


def _offers_formatted(facts: PageVariables) -> str:
    return "; ".join(
        f"{offer.name}: {f'{offer.price}, ' if offer.price else ''}{_left_formatted(offer)}"
        for offer in facts.held.offers or ()
    )


def _left_formatted(offer: Offer) -> str:
    return "sold out" if offer.left == 0 else f"{offer.available} left"


_V = Variable

VARIABLES: tuple[Variable, ...] = (
    _V("inWaitingRoom", "boolean", lambda _: True, "always true while held"),
    _V(
        "waitTimeKnown",
        "boolean",
        lambda f: f.known,
        "whether there is an estimate; false under queue_all",
    ),
    _V(
        "waitTime",
        "integer",
        lambda f: f.minutes,
        "estimated wait in minutes, rounded up; 0 when unknown; random: the 50th percentile",
    ),
    _V(
        "waitTime25Percentile",
        "integer",
        lambda f: f.p25,
        "random: minutes within which 25 % are let in; otherwise 0",
    ),
    _V(
        "waitTime50Percentile",
        "integer",
        lambda f: f.p50,
        "random: minutes within which 50 % are let in; otherwise 0",
    ),
    _V(
        "waitTime75Percentile",
        "integer",
        lambda f: f.p75,
        "random: minutes within which 75 % are let in; otherwise 0",
    ),
    _V(
        "waitTimeFormatted",
        "string",
        _wait_formatted,
        "in English: `10 minutes`, random `5 minutes to 15 minutes`, `unavailable`",
    ),
    _V(
        "queueIsFull",
        "boolean",
        lambda f: f.held.queue_full,
        "the line accepts no more visitors; always false, because the line has no limit; previews"
        " can set it",
    ),
    _V("queueAll", "boolean", lambda f: f.held.queue_all, "all new visitors are held"),
    _V(
        "lastUpdated",
        "string",
        lambda f: iso(f.held.last_updated_ms),
        "time of the last refresh that counted, ISO 8601 with milliseconds, UTC",
    ),
    _V(
        "refreshIntervalSeconds",
        "integer",
        lambda f: f.held.refresh_s,
        "seconds from lastUpdated to the next refresh; 0 when there is none",
    ),
    _V(
        "queueingMethod",
        "string",
        lambda f: f.held.method,
        "`fifo`, `random`, `passthrough` or `reject`",
    ),
    _V("isFIFOQueue", "boolean", lambda f: f.held.method == "fifo", "queueingMethod is fifo"),
    _V("isRandomQueue", "boolean", lambda f: f.held.method == "random", "queueingMethod is random"),
    _V(
        "isPassthroughQueue",
        "boolean",
        lambda f: f.held.method == "passthrough",
        "queueingMethod is passthrough",
    ),
    _V("isRejectQueue", "boolean", lambda f: f.held.method == "reject", "queueingMethod is reject"),
    _V(
        "isEventActive",
        "boolean",
        lambda f: f.held.event_active,
        "an event is active, from the start of its pre-queue to its end",
    ),
    _V(
        "isEventPrequeueing",
        "boolean",
        lambda f: f.held.event_prequeueing,
        "the pre-queue of an event is open",
    ),
    _V(
        "timeUntilEventStart",
        "integer",
        lambda f: f.start_minutes,
        "minutes, rounded up, while prequeueing; otherwise 0",
    ),
    _V(
        "timeUntilEventStartFormatted",
        "string",
        _start_formatted,
        "the same in English; otherwise `unavailable`",
    ),
    _V(
        "timeUntilEventEnd",
        "integer",
        lambda f: f.end_minutes,
        "minutes, rounded up, while an event is active; otherwise 0",
    ),
    _V(
        "timeUntilEventEndFormatted",
        "string",
        _end_formatted,
        "the same in English; otherwise `unavailable`",
    ),
    _V(
        "shuffleAtEventStart",
        "boolean",
        lambda f: f.held.event_active and f.held.shuffle_at_event_start,
        "the pre-queue is shuffled at the start",
    ),
    _V(
        "turnstile",
        "string",
        lambda f: f.held.turnstile,
        "HTML of a challenge, or empty; write `{{{turnstile}}}`",
    ),
    _V(
        "infiniteQueue",
        "boolean",
        lambda f: f.held.infinite_queue,
        "the visitor is in the infinite queue of Turnstile",
    ),
    _V(
        "waitTimeHours",
        "integer",
        lambda f: f.minutes // 60,
        "whole hours of waitTime",
        template_only=True,
    ),
    _V(
        "waitTimeHourMinutes",
        "integer",
        lambda f: f.minutes % 60,
        "minutes of waitTime beyond the whole hours",
        template_only=True,
    ),
)

EXTENSIONS: tuple[Variable, ...] = (
    _V(
        "inLine",
        "boolean",
        lambda f: f.held.in_line,
        "the ticket has come back, so the visitor has a place in line",
    ),
    _V(
        "position",
        "integer",
        lambda f: f.held.position,
        "place in line, 1 is next; 0 when there is none yet",
    ),
    _V("peopleAhead", "integer", lambda f: f.held.ahead, "visitors ahead in line"),
    _V(
        "placeIsAbout",
        "boolean",
        lambda f: f.held.about,
        "several data centers share the line, and not all have reported yet who is ahead",
    ),
    _V("peopleWaiting", "integer", lambda f: f.held.waiting, "visitors in line"),
    _V(
        "waitFrom",
        "integer",
        lambda f: f.low,
        "minutes: 75 % wait longer than this, for every queueing method; 0 when unknown",
    ),
    _V(
        "waitTo",
        "integer",
        lambda f: f.high,
        "minutes: 75 % are let in by then, for every queueing method; 0 when unknown",
    ),
    _V(
        "waitAtMost",
        "integer",
        lambda f: f.most,
        "minutes: 95 % are let in by then; 0 when unknown",
    ),
    _V(
        "waitAtLeast",
        "integer",
        _wait_at_least,
        "minutes: visitors ahead divided by the rate limit, where waitTime is unknown; else 0",
    ),
    _V(
        "waitChange",
        "string",
        lambda f: f.change,
        "why the wait changed: `slower`, `faster`, `stale`, or empty",
    ),
    _V(
        "progressKnown",
        "boolean",
        lambda f: f.progress >= 0,
        "whether `progress` is known (fifo, in line, wait known)",
    ),
    _V(
        "progress",
        "integer",
        lambda f: max(0, f.progress),
        "time waited as a percentage of the whole wait estimated now, 0 to 99",
    ),
    _V(
        "joinedAt",
        "string",
        lambda f: iso(f.held.joined_ms) if f.held.joined_ms else "",
        "time of the first request, ISO 8601; empty when unknown",
    ),
    _V(
        "nextTrySeconds",
        "integer",
        lambda f: f.held.next_try_s,
        "seconds from now to the next refresh; 0 when there is none",
    ),
    _V(
        "receipt",
        "string",
        lambda f: f.held.receipt,
        "the visitor's receipt for the draw of the pre-queue; empty when there is none",
    ),
    _V(
        "drawCommitment",
        "string",
        lambda f: f.held.draw_commitment,
        "hash of the draw's seed, published before the pre-queue opened",
    ),
    _V("drawSeed", "string", lambda f: f.held.draw_seed, "the seed, once the draw has been held"),
    _V(
        "drawnPlace",
        "integer",
        lambda f: f.held.drawn_place,
        "the place drawn, 1 is first; 0 before the draw and when there is none",
    ),
    _V("drawnOf", "integer", lambda f: f.held.drawn_size, "number of visitors in the draw"),
    _V(
        "admissionsPaused",
        "boolean",
        lambda f: f.held.storage_failed,
        "admissions are stopped, because the ledger cannot be written",
    ),
    _V(
        "originUnhealthy",
        "boolean",
        lambda f: f.held.origin_stops == "unhealthy",
        "admissions are stopped, because the origin is unhealthy",
    ),
    _V(
        "originSlow",
        "boolean",
        lambda f: f.held.origin_stops == "slow",
        "admissions are stopped, because the origin is too slow or fails (`capacity` follow)",
    ),
    _V(
        "offersKnown",
        "boolean",
        lambda f: bool(f.held.offers),
        "operators say what is left; in JSON the object `offers` has it",
        template_only=True,
    ),
    _V(
        "offersFormatted",
        "string",
        _offers_formatted,
        "what is left, in English: `Stalls: €45 to €95, few left; Circle: sold out`; or empty",
        template_only=True,
    ),
    _V(
        "soldOut",
        "boolean",
        lambda f: f.sold_out,
        "nothing is left of any offer; in JSON in `offers`",
        template_only=True,
    ),
    _V(
        "outnumbered",
        "boolean",
        lambda f: f.outnumbered,
        "the people ahead would take everything that is left, one each; in JSON in `offers`",
        template_only=True,
    ),
    _V(
        "absentMinutes",
        "integer",
        lambda f: f.held.away_minutes,
        "for how long the place waits after its turn, of a visitor who may close the page, with a"
        " calendar entry or a message to come; 0: the page has to stay open; in JSON only where it is not 0",
        template_only=True,
    ),
)

TEMPLATE_VARIABLES: dict[str, Variable] = {row.name: row for row in VARIABLES} | {
    row.template_name: row for row in EXTENSIONS
}

_PUBLISHED = tuple((row.name, row.read) for row in VARIABLES if not row.template_only)
_OURS = tuple((row.name, row.read) for row in EXTENSIONS if not row.template_only)


def published(facts: PageVariables) -> dict[str, Value]:
    return {name: read(facts) for name, read in _PUBLISHED}


def ours(facts: PageVariables) -> dict[str, Any]:
    """`greenroom`; `offers` only where operators said what is left."""
    found: dict[str, Any] = {name: read(facts) for name, read in _OURS}
    if facts.held.away_minutes:
        found["absentMinutes"] = facts.held.away_minutes
    if facts.held.offers is not None:
        found["offers"] = {
            "soldOut": facts.sold_out,
            "outnumbered": facts.outnumbered,
            "items": offer_items(facts.held.offers),
        }
    return found


def offer_items(offers: tuple[Offer, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": offer.name,
            "price": offer.price,
            "available": offer.available if offer.left is None else offer.left,
            "asOf": iso(offer.as_of_ms),
        }
        for offer in offers
    ]
