from zoneinfo import available_timezones

from starlette.responses import Response

from greenroom.accounts.dashboard.session import safe_path
from greenroom.web.pages.rendering import THEME_COOKIE, THEMES, ZONE_COOKIE
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import PUBLIC, action, view

YEAR_S = 31_536_000


def show(page: PageRequest) -> Response:
    return page.render(
        "settings.html", zones=sorted(available_timezones() | {"UTC"}), themes=THEMES
    )


def save(page: PageRequest) -> Response:
    answer = page.redirect(safe_path(page.field("next") or "/settings"))
    for cookie, field, offered in (
        (THEME_COOKIE, "theme", set(THEMES)),
        (ZONE_COOKIE, "tz", available_timezones() | {"UTC"}),
    ):
        if page.field(field) in offered:
            secure = page.request.url.scheme == "https"
            value = page.field(field).replace("/", "%2F")
            answer.set_cookie(
                cookie, value, max_age=YEAR_S, path=f"{page.prefix}/", secure=secure, samesite="lax"
            )
    return answer


PAGES = (view("/settings", show, filtered=True), action("/settings", save, PUBLIC, filtered=True))
