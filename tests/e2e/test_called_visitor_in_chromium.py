"""In a real Chromium, under the page's own policy: somebody in line allows notifications, closes the
page, is called by the worker, and comes back on another profile; and the page as people with a
keyboard or screen reader meet it.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from called_visitors import CallSite
from dashboard_browser import WHOLE_CHROMIUM, violations_in_both_themes
from decision_sites import sites_in
from page_rig import until
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from push_service import PushService, Subscription

from greenroom.decision.render import render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.model.visit import Arrival
from greenroom.outbound import Guard, OutboundPolicy

BROWSER = WHOLE_CHROMIUM  # notifications

SHOP = "https://shop.example/"

SUBSCRIBES = """(told) => {
  Object.defineProperty(Notification, "requestPermission", { value: async () => "granted" });
  PushManager.prototype.subscribe = async function (options) {
    window.key = options.applicationServerKey.length;
    return { toJSON: () => ({ endpoint: told.to, keys: { p256dh: told.p256dh, auth: told.auth } }) };
  };
  PushManager.prototype.getSubscription = async () => null;
}"""
"""Chromium without Google has no push service to subscribe at; all else is its own."""


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Of the site; Playwright has one of its own."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.fixture
def service() -> Iterator[PushService]:
    started = PushService()
    yield started
    started.close()


class ShownSite:
    """Answers browsers from another thread."""

    def __init__(self, called: CallSite, loop: asyncio.AbstractEventLoop) -> None:
        self.called, self.loop = called, loop
        self.contexts: list[BrowserContext] = []

    def ask(self, arrival: Arrival) -> object:
        async def asked() -> Verdict:
            answered: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
            self.called.site.decisions.receive(arrival, answered.set_result)
            return await asyncio.wait_for(answered, 20)

        verdict = asyncio.run_coroutine_threadsafe(asked(), self.loop).result(30)
        return render(verdict, arrival) if isinstance(verdict, Hold) else verdict

    def passes(self, ms: int, until) -> None:
        asyncio.run_coroutine_threadsafe(self.called.passes(ms, until), self.loop).result(120)

    def profile(self, browser: Browser, **more: object) -> tuple[BrowserContext, Page]:
        context = browser.new_context(locale="en-US", **more)  # type: ignore[arg-type]
        context.route("**/*", self._answer)
        self.contexts.append(context)
        return context, context.new_page()

    def _answer(self, route: Route) -> None:
        request = route.request
        headers = tuple(
            (name.lower().encode(), value.encode())
            for name, value in request.all_headers().items()
            if not name.startswith(":")
        )
        arrival = Arrival(
            request.method, "https", "shop.example", "/", request.url.partition("?")[2],
            (*headers, (b"host", b"shop.example")), "192.0.2.1",
        )  # fmt: skip
        reply = self.ask(arrival)
        cookie = {"Set-Cookie": reply.set_cookie.decode()} if reply.set_cookie else {}  # type: ignore[attr-defined]
        if isinstance(reply, Forward):
            route.fulfill(content_type="text/html", headers=cookie, body="<h1>Shop</h1>")
            return
        sent = {name.decode(): value.decode() for name, value in reply.headers.pairs}  # type: ignore[attr-defined]
        if reply.status == 303:  # type: ignore[attr-defined]  # Playwright follows no redirect of a fulfilled request
            sent.pop("Location")
            body = b'<meta http-equiv=refresh content="0; url=/">'
            route.fulfill(status=200, headers=cookie | {"Content-Type": "text/html"}, body=body)
            return
        route.fulfill(status=200, headers=sent | cookie, body=reply.body)  # type: ignore[attr-defined]


@pytest.fixture
def shown(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, service: PushService
) -> Iterator[ShownSite]:
    site = sites_in(tmp_path)(host="shop.example", total_active_users=100, call_after_minutes=1)
    guard = Guard(OutboundPolicy(ports=(), allowed=("127.0.0.0/8",)), service.resolve)
    found = ShownSite(CallSite(tmp_path, site, 2525, guard=guard, tls=service.trusted), loop)
    yield found
    for context in found.contexts:
        context.close()


def in_line(shown: ShownSite, page: Page) -> None:
    page.goto(SHOP)
    shown.called.site.advance(3_000)
    page.reload()
    expect(page.locator("#hero")).to_have_text("1")


def test_close_the_page_be_called_and_come_back_on_another_profile(
    browser: Browser, shown: ShownSite, service: PushService
) -> None:
    subscription = Subscription(service.url + "tab")
    _, page = shown.profile(browser, permissions=["notifications"])
    page.add_init_script(f"({SUBSCRIBES})({json.dumps(subscription.told)})")
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    in_line(shown, page)
    page.goto(SHOP + "?greenroom=call")
    page.get_by_label("Time I need to come back").select_option("20")
    page.get_by_role("button", name="Notify me in this browser").press("Enter")
    expect(page.locator("#notice")).to_contain_text("shortly before your turn")
    assert page.evaluate("key") == 65
    scopes = page.evaluate(
        "navigator.serviceWorker.getRegistrations().then(all => all.map(one => one.scope))"
    )
    assert scopes == [SHOP + "?greenroom=call"]
    worker = page.context.new_cdp_session(page)
    registrations: list[str] = []
    worker.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda told: registrations.extend(one["registrationId"] for one in told["registrations"]),
    )
    worker.send("ServiceWorker.enable")
    shown.passes(1_200_000, lambda: bool(service.requests))
    message = subscription.read(service.requests[-1][2]).decode()
    until(lambda: bool(registrations), page)  # the browser tells of them
    worker.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": SHOP, "registrationId": registrations[0], "data": message},
    )
    page.wait_for_function(
        "navigator.serviceWorker.getRegistration('?greenroom=call')"
        ".then(one => one.getNotifications()).then(all => all.length)"
    )
    titles = page.evaluate(
        "navigator.serviceWorker.getRegistration('?greenroom=call')"
        ".then(one => one.getNotifications()).then(all => all.map(one => [one.title, one.data]))"
    )
    assert titles[0][0] == "shop.example: It is your turn"
    assert wrong == []
    page.close()
    _, other = shown.profile(browser)
    other.goto(titles[0][1].replace("http://", "https://"))
    other.get_by_role("button", name="Continue here").press("Enter")
    other.wait_for_url(SHOP)
    shown.called.site.advance(90_000)
    other.goto(SHOP)
    expect(other.get_by_role("heading", name="Shop")).to_be_visible()


def test_the_page_by_keyboard_and_screen_reader_with_and_without_a_script(
    browser: Browser, shown: ShownSite
) -> None:
    _, page = shown.profile(browser)
    in_line(shown, page)
    page.goto(SHOP + "?greenroom=call")
    assert violations_in_both_themes(page) == []
    page.get_by_label("E-mail address").fill("ann@mail.example")
    page.get_by_label("E-mail address").press("Enter")
    expect(page.locator("#notice[aria-live=polite]")).to_contain_text("open the link in the e-mail")
    page.reload()
    expect(page.locator("#notice")).to_contain_text("open the link in the e-mail")
    page.get_by_role("button", name="Send me no message").press("Enter")
    expect(page.locator("#notice")).to_have_text("You will get no message.")
    page.get_by_role("link", name="Back to the waiting page").press("Enter")
    expect(page.locator("#kept")).to_contain_text("You may close")
    _, page = shown.profile(browser, java_script_enabled=False)
    page.goto(SHOP)
    shown.called.site.advance(3_000)
    page.goto(SHOP)
    page.goto(SHOP + "?greenroom=call")
    expect(page.get_by_text("This needs JavaScript.")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
