"""Which arrivals may take a place in line: every row of the decision table, with what browsers and
programs really send.
"""

import pytest

from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.request.admissible import (
    ASSETS,
    PREVIEW_AGENTS,
    is_crawler,
    kind_of,
    may_take_place,
    prefers_json,
    shows_page,
    signs_of,
    speculative,
)

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36"
PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
IMAGE = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"


def arrival(path="/shop", method="GET", **headers):
    listed = tuple(
        (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
    )
    return Arrival(method, "https", "shop.example", path, "", listed, "203.0.113.5")


def fetched(dest, mode="no-cors", accept="*/*", **more):
    return arrival(
        user_agent=CHROME, accept=accept, sec_fetch_dest=dest, sec_fetch_mode=mode, **more
    )


CAN = {
    "a page in a window": fetched("document", "navigate", PAGE),
    "a page in a frame": fetched("iframe", "navigate", PAGE),
    "a form sent from a page": arrival(
        method="POST",
        user_agent=CHROME,
        accept=PAGE,
        sec_fetch_dest="document",
        sec_fetch_mode="navigate",
        origin="https://shop.example",
    ),
    "a page fetched by a service worker": fetched("empty", "navigate", PAGE),
    "our own page asking for news": fetched("empty", "cors", greenroom_update="1"),
    "a page over plain http": arrival(user_agent=CHROME, accept=PAGE, referer="http://a/"),
    "a page with an extension like an asset": arrival(
        path="/about.css", user_agent=CHROME, accept=PAGE
    ),
    "an old browser": arrival(user_agent="Mozilla/4.0", accept="text/html, */*"),
    "plain curl": arrival(user_agent="curl/8.5.0", accept="*/*"),
    "a request with nothing": arrival(),
    "an API client that posts": arrival(
        method="POST", path="/api/orders", user_agent="okhttp/4", accept="application/json"
    ),
    "an API client in an app": arrival(path="/api/cart", accept="application/vnd.shop+json"),
    "a document by itself": arrival(path="/guide.pdf", accept="*/*"),
    "a crawler": arrival(
        user_agent="Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        accept=PAGE,
    ),
    "plain OPTIONS": arrival(method="OPTIONS", accept="*/*"),
}
CANNOT = {
    "a prefetch": fetched("document", "navigate", PAGE, sec_purpose="prefetch"),
    "a prerender": fetched("document", "navigate", PAGE, sec_purpose="prefetch;prerender"),
    "an older prefetch": arrival(accept=PAGE, purpose="prefetch"),
    "Safari's preview": arrival(accept=PAGE, x_purpose="preview"),
    "Firefox's prefetch": arrival(accept=PAGE, x_moz="prefetch"),
    "a WebSocket": arrival(upgrade="websocket", connection="Upgrade", user_agent="app/1"),
    "a WebSocket, as a proxy asks about it": arrival(
        sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==", accept="*/*", user_agent="app/1"
    ),
    "a preflight": arrival(
        method="OPTIONS", accept="*/*", origin="https://a", access_control_request_method="POST"
    ),
    "HEAD": arrival(method="HEAD", accept="*/*"),
    "fetch in a page": fetched("empty", "cors"),
    "fetch for JSON and more": fetched("empty", "cors", "application/json, text/plain, */*"),
    "fetch for JSON where the room has none": fetched("empty", "cors", "application/json"),
    "an image": fetched("image", accept=IMAGE),
    "an image over plain http": arrival(path="/logo", user_agent=CHROME, accept=IMAGE),
    "a style over plain http": arrival(
        path="/style", user_agent=CHROME, accept="text/css,*/*;q=0.1"
    ),
    "a script over plain http": arrival(
        path="/app.js", user_agent=CHROME, accept="*/*", referer="http://a/"
    ),
    "a script without extension over plain http": arrival(
        path="/bundle", user_agent=CHROME, accept="*/*", referer="http://a/"
    ),
    "a font over plain http": arrival(path="/x/Font.WOFF2", user_agent=CHROME, accept="*/*"),
    "XHR over plain http": arrival(path="/api", accept="*/*", x_requested_with="XMLHttpRequest"),
    "fetch of another site over plain http": arrival(path="/api", accept="*/*", origin="http://b"),
    "an event stream": arrival(path="/events", accept="text/event-stream"),
    "the icon": arrival(path="/favicon.ico", accept="*/*"),
    "a link preview": arrival(user_agent="facebookexternalhit/1.1", accept="*/*"),
    "a link preview that looks like a browser": arrival(
        user_agent="Mozilla/5.0 (Macintosh) AppleWebKit/601 Safari/601 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
        accept=PAGE,
    ),
}
CANNOT |= {
    f"a {dest}": fetched(dest)
    for dest in "audio audioworklet font manifest paintworklet report script serviceworker sharedworker".split()
}
CANNOT |= {
    f"a {dest}": fetched(dest)
    for dest in "style track video worker xslt webidentity new-in-2030".split()
}


@pytest.mark.parametrize("what", CAN)
def test_what_can_show_a_page_may_wait(what):
    assert may_take_place(CAN[what], json_enabled=False)
    assert may_take_place(CAN[what], json_enabled=True)


@pytest.mark.parametrize(
    ("accept", "prefers"),
    [
        ("application/json", True),
        ("application/json, text/plain, */*", True),
        ("application/vnd.api+json", True),
        ("application/*+json", True),
        ("application/problem+json,*/*;q=0.1", True),
        ("text/plain;q=0.5, application/json", True),
        ("application/json, text/html", True),
        ("text/html, application/json", False),
        ("application/json;q=0.5, text/plain", False),
        ("application/json;q=0.5, */*;q=0.8", False),
        ("application/json;q=0.8, */*;q=0.5", True),
        ("application/json;q=0", False),
        ("*/*, application/json", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_json_is_preferred_when_no_other_type_is_wanted_more_or_named_before(accept, prefers):
    assert prefers_json(accept.encode()) is prefers
    assert not prefers_json(None)


def test_what_is_held_is_shown_the_page_only_when_it_shows_pages():
    shown = {what for what, one in CAN.items() if shows_page(one)}
    assert CAN.keys() - shown == {
        "our own page asking for news",
        "an API client that posts",
        "plain OPTIONS",
    }
    assert {what for what, one in CANNOT.items() if shows_page(one)} == {"HEAD"}


def test_a_crawler_is_known_by_its_name():
    assert is_crawler(CAN["a crawler"])
    assert not any(is_crawler(one) for what, one in CAN.items() if what != "a crawler")


@pytest.mark.parametrize("what", CANNOT)
def test_what_cannot_show_a_page_takes_no_place(what):
    assert not may_take_place(CANNOT[what], json_enabled=False)


def test_fetch_that_prefers_json_may_wait_where_the_room_answers_json():
    prefers = [
        fetched("empty", "cors", accept)
        for accept in ("application/json", "application/json, text/plain, */*")
    ]
    for one in (*prefers, arrival(accept="application/json", origin="http://b")):
        assert may_take_place(one, json_enabled=True)
        assert not may_take_place(one, json_enabled=False)
    assert not may_take_place(
        fetched("empty", "cors", "text/html, application/json"), json_enabled=True
    )
    assert not may_take_place(fetched("script", "cors", "application/json"), json_enabled=True)


@pytest.mark.parametrize("token", PREVIEW_AGENTS)
def test_every_link_preview_in_the_table_is_recognised_in_any_case(token):
    agent = token.decode()
    for said in (agent, agent.upper(), f"Mozilla/5.0 (compatible; {agent}/1.0)"):
        assert not may_take_place(arrival(user_agent=said, accept=PAGE), json_enabled=True)
    assert token == token.lower()


@pytest.mark.parametrize("extension", sorted(ASSETS))
def test_every_asset_in_the_table_is_part_of_a_page_unless_a_page_is_asked_for(extension):
    assert not may_take_place(arrival(path=f"/a.b/c.{extension}", accept="*/*"), json_enabled=True)
    assert may_take_place(arrival(path=f"/a.b/c.{extension}", accept=PAGE), json_enabled=True)
    assert may_take_place(arrival(path=f"/a.{extension}/b", accept="*/*"), json_enabled=True)


def test_only_what_no_one_asked_to_see_yet_is_speculative():
    told = {what for what, found in (CAN | CANNOT).items() if speculative(found)}
    assert told == {
        "a prefetch",
        "a prerender",
        "an older prefetch",
        "Safari's preview",
        "Firefox's prefetch",
    }


def test_a_very_long_agent_costs_nothing_and_is_judged_by_its_beginning():
    assert may_take_place(
        arrival(user_agent="x" * 5000 + "discordbot", accept=PAGE), json_enabled=False
    )
    assert not may_take_place(
        arrival(user_agent="discordbot" + "x" * 5000, accept=PAGE), json_enabled=False
    )


def test_signs_that_are_ready_lead_to_the_same_answers():
    for one in (CAN | CANNOT).values():
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            asked = replace(one, method=method)
            ready = replace(asked, signs=signs_of(asked.facts or dict(asked.headers)))
            for judge in (shows_page, speculative, is_crawler, kind_of):
                assert judge(ready) == judge(asked)
            for json_enabled in (True, False):
                assert may_take_place(ready, json_enabled) == may_take_place(asked, json_enabled)
