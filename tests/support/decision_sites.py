"""Sites with one small room, and visitors who fill it or are held."""

import html
import re
from collections.abc import Callable
from pathlib import Path

from admission_world import small_room
from visitors import Browser, Reply, Site

from greenroom.decision.room_schedule import Bypass
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.pages.language import language

Open = Callable[..., Site]


def sites_in(folder: Path) -> Open:
    """Opens sites with one room: one inside and one a minute, unless something else is said."""

    def opened(bypass: Bypass | None = None, **changes: object) -> Site:
        return Site(
            folder,
            small_room(**{"total_active_users": 1, "new_users_per_minute": 1, **changes}),
            bypass=bypass,
        )

    return opened


def full(site: Site) -> Browser:
    """A visitor takes the only unit."""
    first = Browser(site)
    assert isinstance(first.visit(), Forward)
    return first


def held(site: Site, **request: object) -> tuple[Browser, Answer]:
    browser = Browser(site)
    reply = browser.visit(**request)  # type: ignore[arg-type]
    assert isinstance(reply, Answer)
    return browser, reply


def text(reply: Reply) -> str:
    assert isinstance(reply, Answer)
    return reply.body.decode()


def link_of(browser: Browser) -> str:
    """The query of a fresh link."""
    page = text(browser.visit(query="greenroom=move"))
    found = re.search(r'<a href="http://shop\.example/\?([^"]+)"', page)
    assert found is not None, page
    return html.unescape(found[1])


def pressed(browser: Browser, query: str) -> bool:
    """Whether the press moved something."""
    shown = browser.visit(query=query)
    here = language("en-US").move["here"]
    if f"<button>{here}" not in text(shown):
        return False
    reply = browser.visit(method="POST", query=query)
    assert isinstance(reply, Answer)
    return reply.status == 303 and bool(reply.set_cookie)
