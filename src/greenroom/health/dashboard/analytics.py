"""Health analytics: several checks over one span of time, one of them in detail, and the log."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from greenroom.errors import StorageFailed
from greenroom.health import figures
from greenroom.health.dashboard.parts import HEALTH_VIEW
from greenroom.health.figures import HealthSpan, Latency, UptimeShare
from greenroom.health.rules.memory import EventQuestion, KeptEvent
from greenroom.health.rules.roster import GLOBAL
from greenroom.health.store import HealthStore
from greenroom.model.configuration import Entry
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import REASON_WORDS, Reason
from greenroom.web.pages.rendering import local_time
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view
from greenroom.web.pages.spans import (
    DAY_S,
    HOUR_S,
    MOVES,
    SPANS,
    ChartSpan,
    asked_span,
    span_inputs,
    zone_of,
)
from greenroom.web.refusals import not_found
from greenroom.web.time_format import plain_moment

ANALYTICS = "/health/analytics"
PROBE = "/zones/{zone_id}/health/{check_id}/probes/{number}"

COMPARED_MAX = 6
TONES = ("accent", "blue", "yellow", "red", "violet", "gray")
"""One for each compared check."""
REASON_TONES = ("red", *TONES[:3], *TONES[4:])
"""One for each of the most frequent reasons."""
TABLE_MAX = 500
LOG_ROWS = 50

STEPS = (
    (4 * HOUR_S, "", 60),
    (DAY_S + HOUR_S, "", 300),
    (7 * DAY_S, "", HOUR_S),
    (32 * DAY_S, "", 4 * HOUR_S),
)
HEALTH_SPANS = (*SPANS, ("31d", "31 days", 31 * DAY_S))
LENGTHS = {name: seconds for name, _, seconds in HEALTH_SPANS}

_TIME = Markup('<time datetime="{}">{}</time>')

LATENCIES = {
    "tcp_ms": ("TCP", "Time to connect."),
    "tls_ms": ("TLS", "Time of the TLS handshake after that."),
    "ttfb_ms": ("First byte", "From the connection to the first byte of the answer (TTFB)."),
    "rtt_ms": ("Whole answer", "From the connection to the last byte of the body (RTT)."),
}


class CheckUptime(NamedTuple):
    entry: Entry[HealthCheck]
    zone_name: str
    share: UptimeShare
    chosen: bool
    tone: str


class HealthAnswer(NamedTuple):
    """Figures of the `chosen` checks; `detail` is about one of them, `focus`."""

    span: HealthSpan
    chosen: Sequence[str]
    shares: Mapping[str, UptimeShare]
    available: Mapping[str, Mapping[int, UptimeShare]]
    failed: Mapping[str, Mapping[int, int]]
    probes: int
    focus: str
    detail: Latency
    events: Sequence[KeptEvent]


class LogFilter(NamedTuple):
    status: str = ""
    reason: str = ""
    region: str = ""
    changes: bool = False
    before: tuple[int, int] | None = None

    def question(self, span: HealthSpan) -> EventQuestion:
        """Selects probes; `changes` adds the verdicts over several agents."""
        healthy = {"Healthy": True, "Unhealthy": False}.get(self.status)
        return EventQuestion(
            span.begin_ms,
            span.end_ms,
            region=self.region,
            only_changes=self.changes,
            limit=LOG_ROWS + 1,
            healthy=False if self.reason else healthy,
            probes=None if self.changes else True,
            reason=self.reason,
            before=self.before,
        )


def show(page: PageRequest) -> Response:
    running = page.part(HEALTH_VIEW)
    checks = {
        entry.id: entry
        for entry in page.known.health_checks.values()
        if page.person.sees(entry.parent)
    }
    if running is None or not checks:
        return page.render("health_analytics.html", checks=checks, running=running, problem="")
    try:
        values = _values(page, running.history, checks)
    except StorageFailed as failed:
        problem = f"Health analytics cannot be read at the moment: {failed}."
        return page.render("health_analytics.html", checks={}, running=running, problem=problem)
    return page.render(
        "health_analytics.html", checks=checks, running=running, problem="", **values
    )


def _values(
    page: PageRequest, history: HealthStore, checks: Mapping[str, Entry[HealthCheck]]
) -> dict[str, Any]:
    asked, named = asked_span(page, lengths=LENGTHS, steps=STEPS)
    filters = _filters(page)
    found = _answer(page, history, checks, asked, filters)
    tones = dict(zip(found.chosen, TONES, strict=False))
    kept = _kept(page, asked, named, found)
    return {
        **_span_values(page, asked, named),
        **found._asdict(),
        "chosen": [checks[check_id] for check_id in found.chosen],
        "focus": checks[found.focus],
        "available": _available_rows(found.span, [found.available[key] for key in found.chosen]),
        "rows": _table(page, checks, found.shares, tones),
        "tones": tones,
        "most": COMPARED_MAX,
        "reason_tones": dict(zip(found.failed, REASON_TONES, strict=False)),
        **_latency_values(found, zone_of(page)),
        "filters": filters,
        "reasons": [str(reason) for reason in Reason],
        "events": found.events[:LOG_ROWS],
        "older": _cursor(found.events[LOG_ROWS - 1]) if len(found.events) > LOG_ROWS else "",
        "names": checks,
        "kept": kept,
        "link": lambda **changes: (
            f"{page.url(ANALYTICS)}?{urlencode(_without_empty(kept | changes))}"
        ),
        "chart_json": json.dumps(_chart_data(found, checks, tones)),
    }


def _answer(
    page: PageRequest,
    history: HealthStore,
    checks: Mapping[str, Entry[HealthCheck]],
    asked: ChartSpan,
    filters: LogFilter,
) -> HealthAnswer:
    begin_ms, end_ms, step_ms = asked.start_s * 1000, asked.end_s * 1000, asked.step_s * 1000
    shares = figures.uptimes(history, checks, HealthSpan(begin_ms, end_ms, step_ms, hourly=True))
    chosen = _chosen(page, checks, shares)
    focus = page.query("of") if page.query("of") in chosen else chosen[0]
    span = figures.span_for(history, chosen, begin_ms, end_ms, step_ms)
    available = figures.availability(history, chosen, span)
    failed, probes = figures.failures(history, chosen, span)
    return HealthAnswer(
        span=span,
        chosen=chosen,
        shares=shares | figures.whole(available),
        available=available,
        failed=failed,
        probes=probes,
        focus=focus,
        detail=figures.latency(history, focus, span),
        events=figures.log(history, chosen, filters.question(span)),
    )


def _kept(page: PageRequest, asked: ChartSpan, named: str, found: HealthAnswer) -> dict[str, str]:
    """The query that every link of the page keeps."""
    kept = {"span": named} if named else {"from": str(asked.start_s), "to": str(asked.end_s)}
    kept |= {"check": ",".join(found.chosen)} if page.query("check") else {}
    return kept | ({"of": found.focus} if page.query("of") else {})


def _span_values(page: PageRequest, asked: ChartSpan, named: str) -> dict[str, Any]:
    return {
        "named": named,
        "spans": HEALTH_SPANS,
        "moves": [(name, asked.moved(share)) for name, share in MOVES],
        "inputs": span_inputs(page, asked),
    }


def _latency_values(found: HealthAnswer, zone: str) -> dict[str, Any]:
    detail, steps = found.detail, found.span.steps()
    return {
        "latencies": {name: words for name, words in LATENCIES.items() if detail.bands[name]},
        "heat": [(at, _where(region), f"{ms:.1f}") for (region, at), ms in detail.heat.items()],
        "moments": {
            at: _TIME.format(plain_moment(at), local_time(at, zone))
            for at in (*steps, *(at for _, at in detail.heat))
        },
        "waterfalls": [(one, figures.waterfall(one.medians)) for one in detail.regions],
    }


def _available_rows(
    span: HealthSpan, columns: Sequence[Mapping[int, UptimeShare]]
) -> list[tuple[int, list[str]]]:
    """Texts, because a thousand calls of a template macro are slow."""
    return [
        (
            at,
            [
                "–" if (share := column.get(at)) is None else f"{share.percent or 0:.2f} %"
                for column in columns
            ],
        )
        for at in span.steps()
        if any(at in column for column in columns)
    ]


def _without_empty(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _chosen(
    page: PageRequest, checks: Mapping[str, Entry[HealthCheck]], shares: Mapping[str, UptimeShare]
) -> list[str]:
    """The ids in the query, else the least available checks; never empty."""
    sent = page.request.query_params.getlist("check")[:100]
    asked = [one for text in sent for one in text[:500].split(",") if one in checks]
    worst = sorted(checks, key=lambda key: _urgency(checks[key], shares.get(key)))
    return list(dict.fromkeys(asked or worst))[:COMPARED_MAX]


def _urgency(entry: Entry[HealthCheck], share: UptimeShare | None) -> tuple[float, str]:
    percent = share.percent if share else None
    return (101.0 if percent is None else percent, entry.record.name)


def _table(
    page: PageRequest,
    checks: Mapping[str, Entry[HealthCheck]],
    shares: Mapping[str, UptimeShare],
    tones: Mapping[str, str],
) -> list[CheckUptime]:
    rows = [
        CheckUptime(
            entry,
            page.known.zones[entry.parent].record.name,
            shares.get(key, UptimeShare()),
            key in tones,
            tones.get(key, ""),
        )
        for key, entry in checks.items()
    ]
    rows.sort(key=lambda row: (not row.chosen, *_urgency(row.entry, row.share)))
    return rows[:TABLE_MAX]


def _filters(page: PageRequest) -> LogFilter:
    at, _, number = page.query("before").partition("-")
    known = all(text.isascii() and text.isdigit() and len(text) < 16 for text in (at, number))
    return LogFilter(
        page.query("status") if page.query("status") in ("Healthy", "Unhealthy") else "",
        page.query("reason") if page.query("reason") in list(Reason) else "",
        page.query("region")[:10],
        page.query("changes") == "1",
        (int(at), int(number)) if known else None,
    )


def _cursor(kept: KeptEvent) -> str:
    return f"{kept.event.at_ms}-{kept.number}"


def _chart_data(
    found: HealthAnswer, checks: Mapping[str, Entry[HealthCheck]], tones: Mapping[str, str]
) -> dict[str, Any]:
    steps, detail = found.span.steps(), found.detail
    return {
        "step": found.span.step_ms,
        "from": found.span.begin_ms,
        "to": found.span.end_ms,
        "marks": [],
        "panels": {
            "availability": {
                "unit": "percent",
                "series": [
                    _series(
                        checks[key].record.name,
                        "line",
                        tones[key],
                        [share.percent if (share := shares.get(at)) else None for at in steps],
                    )
                    for key, shares in found.available.items()
                ],
            },
            "failures": {
                "unit": "count",
                "series": [
                    _series(reason, "bar", tone, [counts.get(at, 0) for at in steps], stack=True)
                    for (reason, counts), tone in zip(
                        _most(found.failed).items(), REASON_TONES, strict=False
                    )
                ],
            },
            **{name: {"unit": "ms", "series": [_band(name, detail, steps)]} for name in LATENCIES},
        },
        "heat": {
            "rows": [_where(one.region) for one in detail.regions],
            "cells": [
                [at, _where(region), value] for (region, at), value in sorted(detail.heat.items())
            ],
        },
    }


def _where(region: str) -> str:
    return "here" if region in (GLOBAL, "") else region


def _most(failed: Mapping[str, Mapping[int, int]]) -> dict[str, Mapping[int, int]]:
    """At most one reason per colour; the last one sums up the rest."""
    shown = dict(list(failed.items())[: len(TONES)])
    rest = list(failed.items())[len(TONES) - 1 :]
    if len(failed) > len(TONES):
        shown.popitem()
        others: dict[int, int] = {}
        for _, steps in rest:
            for at, number in steps.items():
                others[at] = others.get(at, 0) + number
        shown["Other reasons"] = others
    return shown


def _series(
    label: str, kind: str, tone: str, values: Sequence[float | None], *, stack: bool = False
) -> dict[str, Any]:
    return {
        "label": label,
        "kind": kind,
        "tone": tone,
        "stack": stack,
        "values": values,
        "before": None,
    }


def _band(name: str, detail: Latency, steps: Iterable[int]) -> dict[str, Any]:
    found = [detail.bands[name].get(at, (None, None)) for at in steps]
    middle, upper = [one[0] for one in found], [one[1] for one in found]
    return {**_series("Median", "band", "accent", middle), "upper": upper}


def probe(page: PageRequest) -> Response:
    entry = page.known.health_checks.get(page.path("check_id"))
    number = page.path("number")
    running = page.part(HEALTH_VIEW)
    if entry is None or entry.parent != page.zone.id:
        raise not_found("health check", page.path("check_id"))
    known = number.isascii() and number.isdigit() and len(number) < 16
    event = running.history.event(int(number)) if running and known else None
    if event is None or event.check_id != entry.id:
        raise not_found("probe", number[:40])
    return page.render(
        "health_probe.html",
        entry=entry,
        zone=page.zone,
        event=event,
        phases=figures.waterfall(event.result),
        words=REASON_WORDS,
    )


PAGES = (view(ANALYTICS, show, filtered=True), view(PROBE, probe))
