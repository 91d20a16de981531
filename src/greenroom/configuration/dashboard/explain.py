"""The route tester: what would become of a request now, step by step."""

from typing import Any

from anyio import from_thread
from starlette.responses import Response

from greenroom.configuration.dashboard.parts import EXPLAINS
from greenroom.configuration.explain_request import (
    CLIENT,
    CLIENT_MAX,
    HEADER_MAX,
    HEADERS_MAX,
    METHOD_MAX,
    URL_MAX,
    ExplainRequest,
    as_plain,
)
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view


def show(page: PageRequest) -> Response:
    """Changes nothing, so it is a GET and can be bookmarked."""
    query = page.request.query_params
    asked = {
        name: query.get(name, default)
        for name, default in (("url", ""), ("method", "GET"), ("client", CLIENT), ("headers", ""))
    }
    problems: list[str] = []
    answer: dict[str, Any] | None = None
    if asked["url"]:
        wanted, problems = _wanted(asked)
        explains = page.part(EXPLAINS)
        if explains is None:
            problems.append("this process serves no visitors")
        elif wanted and not problems:
            answer = as_plain(from_thread.run_sync(explains.explain, wanted))
    return page.render(
        "explain.html", 400 if problems else 200, asked=asked, problems=problems, answer=answer
    )


def _wanted(asked: dict[str, str]) -> tuple[ExplainRequest | None, list[str]]:
    lines = [line for line in asked["headers"].splitlines() if line.strip()]
    pairs = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
    limits = (("url", URL_MAX), ("method", METHOD_MAX), ("client", CLIENT_MAX))
    problems = [
        f"{name}: must be at most {most} characters"
        for name, most in limits
        if len(asked[name]) > most
    ]
    problems += [
        f"headers: must be `Name: value` on each line, not {line[:60]!r}"
        for line, pair in zip(lines, pairs, strict=True)
        if len(pair) != 2
    ]
    if len(lines) > HEADERS_MAX or any(len(line) > HEADER_MAX for line in lines):
        problems.append(f"headers: must be at most {HEADERS_MAX} lines of {HEADER_MAX} characters")
    if problems:
        return None, problems
    headers = tuple((pair[0], pair[1]) for pair in pairs)
    return ExplainRequest(
        asked["url"].strip(),
        asked["method"].strip().upper() or "GET",
        headers,
        asked["client"].strip() or CLIENT,
    ), []


PAGES = (view("/explain", show),)
