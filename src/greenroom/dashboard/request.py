"""What the function of a page gets: who asks, what was sent, the configuration and the state to
show, and ways to answer.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote, urlencode

from anyio import from_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from greenroom.configuration.service import ConfigChange
from greenroom.configuration.state import ProcessState, RoomState
from greenroom.dashboard.live_feed import LiveFeed
from greenroom.dashboard.person import Person
from greenroom.dashboard.rendering import Viewer, rendered
from greenroom.dashboard.services import LiveState, Services
from greenroom.dashboard.sign_in import BrowserFacts, DashboardSession, SignIn
from greenroom.dashboard.undo import number_of_change
from greenroom.decision.cookies import DEVICE_COOKIE, HOST_PREFIX
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.model.zone import Zone
from greenroom.web.refusals import not_found

PREFIX = "greenroom.prefix"
"""Where in the scope a trusted proxy's path stands, such as `/greenroom`; empty when there is none.
"""

ANONYMOUS = Person("", 0, ("",), "", "")  # type: ignore[arg-type]  # the least role, in no zone that there can be

Form = Mapping[str, Sequence[str]]


def _cookie_name(request: Request, name: str) -> str:
    """With `__Host-`, which neither a neighbouring host nor plain HTTP can set, where browsers take
    it: over TLS, without a prefix.
    """
    hosted = request.url.scheme == "https" and not request.scope.get(PREFIX)
    return HOST_PREFIX + name if hosted else name


def sent_cookie(request: Request, name: str) -> str:
    """The value of a cookie of the dashboard; empty without one."""
    return request.cookies.get(_cookie_name(request, name), "")


class PageRequest:
    """One request to the dashboard, after sign-in, role, zone, origin and CSRF token have been
    checked.

    Functions of pages run in a thread: `known`, `state` and `change` may block. In `async def`
    functions use `live` directly, and put what blocks into a thread.
    """

    def __init__(
        self,
        request: Request,
        services: Services,
        live: LiveState,
        sign_in: SignIn,
        feed: LiveFeed,
        *,
        known: Configuration,
        session: DashboardSession | None,
        form: Form,
        prefix: str,
    ) -> None:
        self.request = request
        self.services = services
        self.live = live
        self.sign_in = sign_in
        self.feed = feed
        """The stream of the live pages; belongs to the event loop."""
        self.known = known
        """The configuration at the beginning of the request, of all zones: filter it with `person`.
        """
        self.session = session
        self.person = session.person if session else ANONYMOUS
        self.form = form
        self.prefix = prefix

    @property
    def browser(self) -> BrowserFacts:
        """Where the request comes from."""
        client = self.request.client
        agent = self.request.headers.get("user-agent", "")
        return BrowserFacts(client.host if client else "", agent, self.cookie(DEVICE_COOKIE))

    def cookie(self, name: str) -> str:
        """The value of a cookie of the dashboard; empty without one."""
        return sent_cookie(self.request, name)

    def set_cookie(
        self,
        answer: Response,
        name: str,
        value: str,
        max_age_s: int,
        samesite: Literal["lax", "strict"] = "lax",
        path: str = "/",
    ) -> None:
        """Sets it out of reach of scripts; an empty value with age 0 removes it. `__Host-` allows
        no `path` but `/`.
        """
        sent_name = _cookie_name(self.request, name)
        answer.set_cookie(
            sent_name,
            value,
            max_age_s,
            expires=0 if not max_age_s else None,
            path=self.prefix + (path if sent_name == name else "/"),
            secure=self.request.url.scheme == "https",
            httponly=True,
            samesite=samesite,
        )

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks for a part of a page."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def now_ms(self) -> int:
        """Unix milliseconds."""
        return self.services.config.clock.now_ms()

    @cached_property
    def _look(self) -> tuple[ProcessState, Mapping[str, RoomState]]:
        return from_thread.run_sync(self.live.look)

    @property
    def state(self) -> ProcessState:
        """What is going on, at most half a second old. Only in functions that run in a thread."""
        return self._look[0]

    def room_state(self, room_id: str) -> RoomState | None:
        """What is going on in one room; None while no process here serves it."""
        return self._look[1].get(room_id)

    def path(self, name: str) -> str:
        """A value of the path."""
        return str(self.request.path_params[name])

    @property
    def zone(self) -> Entry[Zone]:
        """The zone of the path. Raises Refused when there is none."""
        zone = self.known.zones.get(self.path("zone_id"))
        if zone is None:
            raise not_found("zone", self.path("zone_id"))
        return zone

    @property
    def room(self) -> Entry[Room]:
        """The room of the path, in its zone. Raises Refused when there is none."""
        room = self.known.rooms.get(self.path("room_id"))
        if room is None or room.parent != self.zone.id:
            raise not_found("waiting room", self.path("room_id"))
        return room

    def query(self, name: str, default: str = "") -> str:
        """A value of the query string, cut at 500 characters."""
        return self.request.query_params.get(name, default)[:500]

    def field(self, name: str, default: str = "") -> str:
        """A value of the form that was sent; the last one counts."""
        values = self.form.get(name)
        return values[-1] if values else default

    def change(self, plan: ConfigChange) -> Any:
        """Does what is planned, in the name of this person. Raises Refused and StorageFailed."""
        return self.services.config.change(self.person.author, plan)

    def url(self, path: str, **query: str) -> str:
        """An address of the dashboard, with the path under which a proxy serves it."""
        return (
            self.prefix
            + quote(path, safe="/-._~:@!$&'()*+,;=%")
            + (f"?{urlencode(query)}" if query else "")
        )

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, from its template."""
        viewer = Viewer.of(self.request.headers, self.request.cookies)
        return Response(rendered(template, self, viewer, values), status, media_type="text/html")

    def redirect(self, path: str, **query: str) -> Response:
        """Sends the browser to another page of the dashboard, with GET.

        `notice="saved"` shows a line of NOTICES there; when this request changed something that can
        be undone, the page offers that.
        """
        if self.session and query.get("notice"):
            number = number_of_change(
                self.services.config, self.person, query["notice"], self.known.revision
            )
            query |= {"undo": number} if number else {}
        to = self.url(path, **query)
        if self.is_fragment:
            return Response(status_code=204, headers={"HX-Redirect": to})
        return RedirectResponse(to, 303)
