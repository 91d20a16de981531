"""Previews in a frame of a page: their headers, and what is wrong in place of the preview."""

from collections.abc import Sequence

from starlette.responses import Response

from greenroom.web.pages.request import PageRequest

FRAME = {"X-Frame-Options": "SAMEORIGIN", "Referrer-Policy": "no-referrer"}
PROBLEMS_CSP = "sandbox; default-src 'none'; style-src 'self'; frame-ancestors 'self'"


def problems_in_frame(page: PageRequest, texts: Sequence[str]) -> Response:
    answer = page.render("page_problems.html", 400, texts=texts)
    answer.headers.update(FRAME | {"Content-Security-Policy": PROBLEMS_CSP})
    return answer
