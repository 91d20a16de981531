"""Explains a request with the functions of the data path. Only the ledger knows whether a place is
free now.
"""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from greenroom.admission.decide import (
    ArrivalQuestion,
    comes_from_elsewhere,
    decide,
    read_alone,
)
from greenroom.admission.schedule import Effective, Phase, effective
from greenroom.decision.explain_answer import answer_words, cookie_words, notes_words
from greenroom.decision.room_view import EMPTY, STORAGE_FAILED, RoomView
from greenroom.errors import InvalidConfig
from greenroom.model.event import OVERRIDES, Event
from greenroom.model.fields import specs
from greenroom.model.record import replace
from greenroom.model.room import LIMITS, Room
from greenroom.model.route import Route
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.request.arrival import Sender, arrival_from
from greenroom.request.canonical import Refusal, Target
from greenroom.request.cookie_scope import crosses_sites
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.request.routing import KnownHosts, RouteTable, route_prefix
from greenroom.rules import (
    ListMembership,
    Lookups,
    RequestFacts,
    compile_rule,
)

NOT_SETTINGS = frozenset(
    ("id", "name", "host", "path", "additional_routes", "description", "custom_page_html")
)

ROUTES_SHOWN_MAX = 50
"""A generated configuration may have thousands."""


class RoomDefinition(msgspec.Struct, frozen=True):
    """`rules` include those that settings add."""

    room: Room
    events: tuple[Event, ...] = ()
    rules: tuple[Rule, ...] = ()
    always_use_https: bool = False


class Seats(msgspec.Struct, frozen=True):
    active: int
    waiting: int
    # healthy, unhealthy or unknown, by the health checks on its origin; empty: there are none
    origin: str = ""
    held_for_origin: bool = False
    held_for_slow_origin: bool = False
    # active visitors that the origin can take, where the room follows it
    capacity: int | None = None
    newcomers_confirmed: bool = (
        False  # new visitors have to show their ticket before they are let in
    )
    storage_failed: bool = False


class RouteSeen(msgspec.Struct, frozen=True):
    room: str
    host: str
    path: str
    chosen: bool
    why: str


class RuleSeen(msgspec.Struct, frozen=True):
    """`result`: holds, does not hold, switched off, or cannot be evaluated."""

    id: str
    description: str
    expression: str
    result: str


class Setting(msgspec.Struct, frozen=True):
    """`source`: event, room or default."""

    name: str
    value: bool | int | str
    source: str


class EventSeen(msgspec.Struct, frozen=True):
    """`phase`: prequeue or running."""

    id: str
    name: str
    phase: str
    until_ms: int


class Explanation(msgspec.Struct, frozen=True):
    """`result`: origin, waiting or depends; `word` is for programs, `reason` for people."""

    method: str
    url: str
    client: str
    result: str
    word: str
    reason: str
    room_id: str = ""
    room: str = ""
    event: EventSeen | None = None
    routes: tuple[RouteSeen, ...] = ()
    rules: tuple[RuleSeen, ...] = ()
    settings: tuple[Setting, ...] = ()
    cookie: str = ""
    answer: str = ""
    seats: Seats | None = None
    notes: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()


def explain(
    arrival: Arrival,
    plans: Sequence[RoomDefinition],
    lists: Mapping[str, ListMembership],
    lookups: Lookups,
    now_ms: int,
    ledgers: Mapping[str, Seats],
    hosts: KnownHosts | None = None,
) -> Explanation:
    """For a visitor without a valid ticket. `ledgers` by room id; `hosts` None: all are served."""
    table = RouteTable(
        (route, plan.room.case_insensitive_paths, (plan, route))
        for plan in plans
        for route in plan.room.routes
    )
    read = [table.find(arrival.host, path) for path in arrival.readings or (arrival.path,)]
    covering = [seen for seen in read if seen is not None]
    plan, route = covering[0] if covering else (None, None)
    query = f"?{arrival.query}" if arrival.query else ""
    judged = read if arrival.otherwise is not None else covering
    several = len({seen and seen[0].room.id for seen in judged}) > 1
    if plan is not None and not several and arrival.otherwise is not None:
        several = not _rules_alike(plan, arrival, lists, lookups, now_ms)
    if several and isinstance(arrival.otherwise, Target):
        form = replace(arrival, path=arrival.otherwise.path, readings=(), otherwise=None)
        told = explain(form, plans, lists, lookups, now_ms, ledgers, hosts)
        return replace(told, readings=arrival.readings)
    result, word, reason = _without_room(arrival, several, hosts)
    told = Explanation(
        method=arrival.method,
        url=f"{arrival.scheme}://{arrival.host}{arrival.path}{query}",
        client=arrival.client,
        result=result,
        word=word,
        reason=reason,
        routes=_routes(arrival, plans, plan, route),
        readings=arrival.readings,
    )
    if plan is None or several:
        return told
    known = ledgers.get(plan.room.id)
    return _in_room(told, arrival, plan, lists, lookups, now_ms, known)


def _in_room(
    told: Explanation,
    arrival: Arrival,
    plan: RoomDefinition,
    lists: Mapping[str, ListMembership],
    lookups: Lookups,
    now_ms: int,
    known: Seats | None,
) -> Explanation:
    room = plan.room
    now = replace(
        effective(room, plan.events, now_ms),
        origin_down=known is not None and known.held_for_origin,
        origin_slow=known is not None and known.held_for_slow_origin,
        capacity=known.capacity if known is not None else None,
    )
    facts = [RequestFacts(reading, now_ms, lookups) for reading in read_alone(arrival)]
    rules, bypassing = _rules(plan.rules, facts, lists) if not room.suspended else ((), None)
    result, word, reason = _verdict(arrival, now, bypassing, now_ms, known, plan.always_use_https)
    return replace(
        told,
        result=result,
        word=word,
        reason=reason,
        room_id=room.id,
        room=room.name,
        event=_event(now),
        rules=rules,
        settings=_settings(now),
        cookie=cookie_words(room),
        answer=answer_words(arrival, now.room, word) if result != "origin" else "",
        seats=known,
        notes=notes_words(arrival, room, result),
    )


def _without_room(
    arrival: Arrival, several: bool, hosts: KnownHosts | None
) -> tuple[str, str, str]:
    if several:
        return (
            "refused",
            "several_rooms",
            (
                "Status 400: the path can be read in several ways, which belong to different rooms."
                if arrival.otherwise is None
                else (
                    "Status 400: the path can be read in several ways, which do not belong to the"
                    " same room and rules."
                )
            ),
        )
    if hosts is not None and not hosts.knows(arrival.host):
        return (
            "refused",
            "unknown_host",
            (
                f"Status 421: no room, zone or entry of [origins] names the host {arrival.host}"
                " (other_hosts)."
            ),
        )
    return "origin", "no_room", "No room covers this host and path."


def _routes(
    arrival: Arrival,
    plans: Sequence[RoomDefinition],
    chosen: RoomDefinition | None,
    route: Route | None,
) -> tuple[RouteSeen, ...]:
    """The chosen one first, then other routes of the host."""
    seen = []
    for plan in plans:
        for other in plan.room.routes:
            alone = RouteTable([(other, plan.room.case_insensitive_paths, True)])
            mine = plan is chosen and other == route
            if mine:
                why = "the most specific matching route: first the host, then the longest path"
            elif alone.find(arrival.host, arrival.path):
                why = f"also matches, but {_less(other, route)}"
            elif alone.find(arrival.host, other.path):
                why = f"the path does not begin with {route_prefix(other.path)}, segment by segment"
            else:
                continue
            seen.append(RouteSeen(plan.room.name, other.host, other.path, mine, why))
    return tuple(
        sorted(seen, key=lambda one: (not one.chosen, -len(one.host), -len(one.path)))[
            :ROUTES_SHOWN_MAX
        ]
    )


def _less(other: Route, route: Route | None) -> str:
    return (
        "its path is shorter"
        if route and other.host == route.host
        else f"{other.host} is less specific than the chosen host"
    )


def _rules_alike(
    plan: RoomDefinition,
    arrival: Arrival,
    lists: Mapping[str, ListMembership],
    lookups: Lookups,
    now_ms: int,
) -> bool:
    if plan.room.suspended:
        return True
    holding = [
        _rules(plan.rules, [RequestFacts(reading, now_ms, lookups)], lists)[1] is not None
        for reading in read_alone(arrival)
    ]
    return all(holding) or not any(holding)


def _rules(
    rules: Sequence[Rule], facts: Sequence[RequestFacts], lists: Mapping[str, ListMembership]
) -> tuple[tuple[RuleSeen, ...], Rule | None]:
    """Every rule's result, and the first match."""
    seen: list[RuleSeen] = []
    bypassing: Rule | None = None
    for rule in rules:
        try:
            holds = compile_rule(rule.expression, lists)
            result = (
                "switched off"
                if not rule.enabled
                else "holds"
                if all(map(holds, facts))
                else "does not hold"
            )
        except InvalidConfig:
            result = "cannot be evaluated: the expression is invalid"
        except Exception as error:  # what the data path counts as not holding is told here
            result = f"cannot be evaluated: {error}"
        seen.append(RuleSeen(rule.id, rule.description, rule.expression, result))
        if result == "holds" and bypassing is None:
            bypassing = rule
    return tuple(seen), bypassing


class _Covered(msgspec.Struct, frozen=True):
    effective: Effective
    holding: Rule | None
    draw: None = None
    passes_well_known: bool = False
    moves: bool = False
    calls: bool = False
    extensions: int = 0
    crosses_sites: bool = False

    def ticket_crosses_sites(self, _scheme: str) -> bool:
        return self.crosses_sites

    @property
    def room(self) -> Room:
        return self.effective.room

    @property
    def holds_nobody(self) -> bool:
        return self.effective.holds_nobody

    def bypass(self, _arrival: Arrival, _now_ms: int) -> Rule | None:
        return self.holding


def _verdict(
    arrival: Arrival,
    now: Effective,
    holding: Rule | None,
    now_ms: int,
    ledgers: Seats | None,
    always_use_https: bool,
) -> tuple[str, str, str]:
    crosses = crosses_sites(now.room, always_use_https or arrival.scheme == "https")
    question, _ = decide(
        _Covered(now, holding, crosses_sites=crosses), arrival, now_ms, lambda *_: ()
    )
    if question is ArrivalQuestion.ARRIVE:
        return _arrives(now, ledgers)
    if question is ArrivalQuestion.BYPASSED and holding is not None:
        said = holding.description or holding.expression
        return "origin", "bypassed", f"Skips the line: matches bypass rule {said}."
    if question is ArrivalQuestion.PROVISIONAL and comes_from_elsewhere(arrival) and not crosses:
        return (
            "depends",
            "from_elsewhere",
            (
                "Another site sent this form, and browsers keep the ticket back then"
                " (SameSite=Lax): it goes on while there is room to spare and no visitor waits, and"
                " gets no ticket. With HTTPS and samesite auto the ticket comes along."
            ),
        )
    if question is ArrivalQuestion.PROVISIONAL and _arrives(now, ledgers)[0] != "waiting":
        return (
            "depends",
            "provisional",
            (
                "It shows neither a page nor JSON: it goes on while there is room to spare and no"
                " visitor waits."
            ),
        )
    return _WORDS[question]


_WORDS = {
    ArrivalQuestion.SUSPENDED: (
        "origin",
        "suspended",
        "The room is suspended: all visitors go to the origin and nothing is recorded.",
    ),
    ArrivalQuestion.PLACELESS: (
        "waiting",
        "placeless",
        "This request can show neither a page nor JSON, so it is held without a place in line.",
    ),
    ArrivalQuestion.PROVISIONAL: (
        "waiting",
        "placeless",
        (
            "It shows neither a page nor JSON, and there is no room to spare: it is held without a"
            " place."
        ),
    ),
    ArrivalQuestion.PREFLIGHT: (
        "origin",
        "preflight",
        (
            "It is a CORS preflight of a listed origin (cors_origins): the application answers it;"
            " no cookie, not counted as a visitor."
        ),
    ),
    ArrivalQuestion.LINE_TABLE: (
        "table",
        "line_table",
        "It asks for the table of the line (line_table), which is the same for everybody.",
    ),
    ArrivalQuestion.LEAVE: (
        "waiting",
        "leaves",
        "This request gives up a place in line: it is answered with a farewell.",
    ),
}


def _arrives(now: Effective, ledgers: Seats | None) -> tuple[str, str, str]:
    failed = ledgers is not None and ledgers.storage_failed
    state = RoomView(now, STORAGE_FAILED if failed else EMPTY).state
    if state.word == "passthrough":
        return "origin", "passthrough", _HELD["passthrough"]
    if state.admits:
        return _by_limits(now, ledgers)
    how = (
        "places are drawn at the start"
        if now.event and now.event.shuffle_at_event_start
        else "the line keeps its order"
    )
    return "waiting", state.reason, _HELD[state.reason].format(how=how)


_HELD = {
    "storage": "Admissions are stopped: greenroom cannot write down who is inside.",
    "queue_all": "queue_all holds all new visitors.",
    "prequeue": "The pre-queue is open: all new visitors are held until the start; {how}.",
    "reject": (
        "The queueing method is reject: new visitors see that the site is closed, and there is no"
        " line."
    ),
    "origin": (
        "The origin is unhealthy, and on_unhealthy_origin holds all new visitors until it is well."
    ),
    "origin_slow": (
        "The room follows its origin, which is too slow or fails: all new visitors are held until"
        " it answers in time."
    ),
    "passthrough": (
        "The queueing method is passthrough: all visitors go to the origin and are counted."
    ),
}


def _by_limits(now: Effective, ledgers: Seats | None) -> tuple[str, str, str]:
    room, limit = now.room, now.active_limit
    method = room.queueing_method
    limits = f"{limit} active, {room.new_users_per_minute} a minute"
    if ledgers is None and room.confirm_newcomers is True:
        return _confirms(room)
    if ledgers is None:
        return (
            "depends",
            "limits",
            (
                f"Let in at once while the limits ({limits}) allow it and no one waits; otherwise"
                f" placed in line ({method})."
            ),
        )
    state = f"{ledgers.active} of {limit} active, {ledgers.waiting} waiting"
    if ledgers.waiting or ledgers.active >= limit:
        return (
            "waiting",
            "full",
            f"There is a line, or the room is full ({state}): placed in line ({method}).",
        )
    if room.confirm_newcomers is True or ledgers.newcomers_confirmed:
        return _confirms(room)
    return (
        "depends",
        "limits",
        (
            f"There is room ({state}): let in at once, unless as many as"
            f" `new_users_per_minute` ({room.new_users_per_minute}) were let in during the last minute."
        ),
    )


def _confirms(room: Room) -> tuple[str, str, str]:
    why = (
        ""
        if room.confirm_newcomers is True
        else ", because visitors whose ticket has not come back hold a quarter of either limit"
    )
    return (
        "waiting",
        "confirms",
        (
            f"A new visitor is let in when the ticket has come back, after about two seconds{why}"
            " (confirm_newcomers)."
        ),
    )


def _settings(now: Effective) -> tuple[Setting, ...]:
    plain = Room(name="plain", host="*", total_active_users=1, new_users_per_minute=1)
    shown = []
    for name in specs(Room):
        value = getattr(now.room, name)
        if name in NOT_SETTINGS or not isinstance(value, bool | int | str):
            continue
        by_event = (
            now.event is not None and name in OVERRIDES and getattr(now.event, name) is not None
        )
        needed = name in LIMITS
        source = (
            "operation"
            if name in now.room.operated
            else "event"
            if by_event
            else "default"
            if value == getattr(plain, name) and not needed
            else "room"
        )
        shown.append(Setting(name, value, source))
    return tuple(shown)


def _event(now: Effective) -> EventSeen | None:
    if now.event is None:
        return None
    phase = "prequeue" if now.phase is Phase.PREQUEUE else "running"
    return EventSeen(
        now.event.id, now.event.name, phase, now.phase_ends_ms or now.event.event_end_ms
    )


def described_arrival(
    url: str,
    method: str,
    headers: Iterable[tuple[str, str]],
    client: str,
    policy: ForwardedPolicy | None = None,
) -> Arrival | Refusal:
    """Parsed exactly like a real request. `headers` may bring another Host; `client` is the peer."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        authority = parts.netloc.rpartition("@")[2]
        scheme = parts.scheme.lower()
    except ValueError as error:
        return Refusal(400, f"the URL cannot be read: {error}")
    if scheme not in ("http", "https") or not authority:
        return Refusal(400, "the URL must begin with http:// or https:// and name a host")
    target = url.split("://", 1)[-1].partition("#")[0]
    cut = min((at for at in (target.find("/"), target.find("?")) if at >= 0), default=len(target))
    path = target[cut:] if target[cut:].startswith("/") else f"/{target[cut:]}"
    try:
        sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        named = authority.encode("latin-1")
        raw = path.encode()
    except UnicodeEncodeError:
        return Refusal(
            400,
            "the URL or a header contains a character that is not allowed in a request;"
            " percent-encode it",
        )
    host = [] if any(name.lower() == b"host" for name, _ in sent) else [(b"Host", named)]
    return arrival_from(
        method, raw, [*host, *sent], Sender(client, scheme == "https", policy or ForwardedPolicy())
    )
