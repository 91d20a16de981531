"""The request as a page's function gets it, with the configuration, the state, and ways to answer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar, cast
from urllib.parse import quote, urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from greenroom.decision.cookies import HOST_PREFIX
from greenroom.model.account import Role, SessionRow
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.model.zone import Zone
from greenroom.web.config_service import ConfigChange, ConfigService, refuse_read_only
from greenroom.web.pages.rendering import Viewer
from greenroom.web.refusals import not_found

# Running parts of a process that pages show, by typed keys.

T = TypeVar("T")


class PagePart(Generic[T]):
    def __init__(self, name: str) -> None:
        self.name = name


class PageParts:
    def __init__(self) -> None:
        self._of: dict[PagePart[Any], Any] = {}

    def put(self, key: PagePart[T], part: T | None) -> Self:
        self._of[key] = part
        return self

    def find(self, key: PagePart[T]) -> T | None:
        return cast("T | None", self._of.get(key))

    def __getitem__(self, key: PagePart[T]) -> T:
        """Raises LookupError."""
        found = self.find(key)
        if found is None:
            raise LookupError(f"this process has no part {key.name!r}")
        return found


# A local account, an API token, a person of an OpenID Connect provider, or the holder of the one-
# time link.


class Person(NamedTuple):
    """`zone_ids`: empty for all; `author` is for the audit log."""

    name: str
    role: Role
    zone_ids: tuple[str, ...]
    author: str
    owner: str

    def sees(self, zone_id: str) -> bool:
        return not self.zone_ids or zone_id in self.zone_ids

    def may(self, role: Role) -> bool:
        return self.role >= role

    def zones(self, known: Configuration) -> list[Entry[Zone]]:
        return sorted(
            (entry for entry in known.zones.values() if self.sees(entry.id)),
            key=lambda entry: entry.record.name,
        )

    def own_zones(self, known: Configuration) -> list[Entry[Zone]]:
        """Without the zones of a configuration file."""
        return [zone for zone in self.zones(known) if not zone.read_only]

    def rooms(self, known: Configuration) -> Iterable[Entry[Room]]:
        return (entry for entry in known.rooms.values() if self.sees(entry.parent))


class DashboardSession(NamedTuple):
    row: SessionRow
    person: Person
    csrf: str


PREFIX = "greenroom.prefix"

ANONYMOUS = Person("", 0, ("",), "", "")  # type: ignore[arg-type]  # the least role, in no zone that there can be

Form = Mapping[str, Sequence[str]]


class PageFrame(NamedTuple):
    templates: Environment
    values: Callable[["PageRequest"], Mapping[str, Any]]
    undo_number: Callable[["PageRequest", str], str]
    """By notice; empty: none."""


def _cookie_name(request: Request, name: str) -> str:
    hosted = request.url.scheme == "https" and not request.scope.get(PREFIX)
    return HOST_PREFIX + name if hosted else name


def sent_cookie(request: Request, name: str) -> str:
    return request.cookies.get(_cookie_name(request, name), "")


class PageRequest:
    """After sign-in, role, zone, origin and CSRF token have been checked. Page functions run in a
    thread; in `async def` functions put what blocks into a thread.
    """

    def __init__(
        self,
        request: Request,
        frame: PageFrame,
        config: ConfigService,
        parts: PageParts,
        *,
        known: Configuration,
        session: DashboardSession | None,
        form: Form,
        prefix: str,
    ) -> None:
        self.request = request
        self.config = config
        self.parts = parts
        self._frame = frame
        self.known = known
        """All zones: filter it with `person`."""
        self.session = session
        self.person = session.person if session else ANONYMOUS
        self.form = form
        self.prefix = prefix

    def cookie(self, name: str) -> str:
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
        """An empty value with age 0 removes it. `__Host-` allows no `path` but `/`."""
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
        return self.request.headers.get("hx-request") == "true"

    @property
    def now_ms(self) -> int:
        return self.config.clock.now_ms()

    def part(self, key: PagePart[T]) -> T | None:
        return self.parts.find(key)

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    @property
    def zone(self) -> Entry[Zone]:
        """Raises Refused."""
        zone = self.known.zones.get(self.path("zone_id"))
        if zone is None:
            raise not_found("zone", self.path("zone_id"))
        return zone

    @property
    def room(self) -> Entry[Room]:
        """Raises Refused."""
        room = self.known.rooms.get(self.path("room_id"))
        if room is None or room.parent != self.zone.id:
            raise not_found("waiting room", self.path("room_id"))
        return room

    @property
    def own_zone(self) -> Entry[Zone]:
        """Raises Refused too when the zone comes from a configuration file."""
        zone = self.zone
        refuse_read_only(zone, "zone")
        return zone

    @property
    def own_room(self) -> Entry[Room]:
        """Raises Refused too when the room comes from a configuration file."""
        room = self.room
        refuse_read_only(room, "waiting room")
        return room

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)[:500]

    def field(self, name: str, default: str = "") -> str:
        values = self.form.get(name)
        return values[-1] if values else default

    def change(self, plan: ConfigChange) -> Any:
        """Raises Refused and StorageFailed."""
        return self.config.change(self.person.author, plan)

    def url(self, path: str, **query: str) -> str:
        return (
            self.prefix
            + quote(path, safe="/-._~:@!$&'()*+,;=%")
            + (f"?{urlencode(query)}" if query else "")
        )

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        viewer = Viewer.of(self.request.headers, self.request.cookies)
        shared = {"page": self, "person": self.person, "viewer": viewer}
        made = self._frame.templates.get_template(template)
        text = made.render({**shared, **self._frame.values(self), **values})
        return Response(text, status, media_type="text/html")

    def redirect(self, path: str, **query: str) -> Response:
        """With GET. `notice="saved"` shows a line of NOTICES there; the page offers to undo what
        this request changed.
        """
        if self.session and query.get("notice"):
            number = self._frame.undo_number(self, query["notice"])
            query |= {"undo": number} if number else {}
        to = self.url(path, **query)
        if self.is_fragment:
            return Response(status_code=204, headers={"HX-Redirect": to})
        return RedirectResponse(to, 303)
