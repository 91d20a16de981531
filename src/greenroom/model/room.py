"""Waiting rooms as configured, by the published API, with marked extensions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.branding import Branding, LocalMessage, shown_problems
from greenroom.model.fields import NAME_WORDS, FormSpec, field_problems, spec, vars_of, wrong_fields
from greenroom.model.line_table import CHECK_IN_S
from greenroom.model.route import (
    CORS_ORIGINS_MAX,
    PRIORITY_PATHS_MAX,
    CookieAttributes,
    Route,
    cookie_problems,
    cors_origin_problems,
    normal_origin,
    room_route_problems,
)

LIMIT_MAX = 2_147_483_647
TEMPLATE_MAX = 1_048_576
SESSION_LONGEST = 24 * 60
"""Minutes. 30 for Cloudflare, and for the API unless session_ceiling says more. Ticket keys are kept
this long.
"""
CLAIM_LONGEST = 30
"""Minutes. Ticket ids are remembered a little longer."""
ANY_PASS = ("hs256", "es256", "secure_link")
FRAME_SOURCE = (
    r"(?:'self'|\*|https?://(?:\*\.)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::(?:[0-9]{1,5}|\*))?)"
)
PUSHED = "push"
CAPACITY_MODES = ("fixed", "observe", "suggest", "follow")
OBJECTIVE_LEAST_MS, OBJECTIVE_MOST_MS = 50, 30_000
METHODS = ("fifo", "random", "passthrough", "reject")
TURNSTILE_MODES = ("off", "invisible", "visible_non_interactive", "visible_managed")
TURNSTILE_ACTIONS = ("log", "infinite_queue")
LANGUAGES = tuple(
    "en-US es-ES de-DE fr-FR it-IT ja-JP ko-KR pt-BR zh-CN zh-TW nl-NL pl-PL id-ID tr-TR ar-EG"
    " ru-RU fa-IR bg-BG hr-HR cs-CZ da-DK fi-FI lt-LT lv-LV ms-MY nb-NO ro-RO el-GR he-IL hi-IN"
    " hu-HU sr-BA sk-SK sl-SI sv-SE tl-PH th-TH uk-UA vi-VN".split()
)

LIMITS = ("total_active_users", "new_users_per_minute")
OPERATED = ("sessions_ended_ms", "let_in", "let_in_until_ms")
"""Kept by other changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bounds and defaults as published by Cloudflare, but for the minimum of the two limits: 200
    there, 1 here.
    """

    id: str = spec("unique, stable identifier that tickets are bound to", "", read_only=True)
    name: str = spec(
        "unique name",
        pattern=r"[A-Za-z0-9_-]+",
        pattern_words=NAME_WORDS,
        low=1,
        high=200,
        form=FormSpec(
            "where", "Name", "A short name for you and your colleagues. Visitors do not see it."
        ),
    )
    host: str = spec(
        "host name that is covered, without scheme or port; `*.example.com` covers the hosts below"
        " it; in a file, `*` covers every host",
        low=1,
        high=253,
        example="shop.example.com",
        form=FormSpec(
            "where",
            "Host",
            "What visitors type, without https:// and port. *.example.com covers"
            " every host below it.",
        ),
    )
    path: str = spec(
        "path prefix that is covered, on segment boundaries",
        "/",
        low=1,
        high=2048,
        form=FormSpec(
            "where", "Path", "/ covers the whole site, /tickets that page and all below it."
        ),
    )
    additional_routes: tuple[Route, ...] = spec(
        "more {host, path} pairs that share this room",
        (),
        high=100,
        form=FormSpec(
            "where",
            "More hosts and paths",
            "One host and path on each line, such as shop.example.com/tickets. They"
            " share this room and its line.",
            lines=True,
        ),
    )
    total_active_users: int = spec(
        "how many visitors may be active at the origin at once",
        low=1,
        high=LIMIT_MAX,
        form=FormSpec(
            "limits",
            "Active visitors at once",
            "How many visitors may be in your application at the same time.",
        ),
    )
    new_users_per_minute: int = spec(
        "how many visitors may be let in during any 60 seconds",
        low=1,
        high=LIMIT_MAX,
        form=FormSpec("limits", "New visitors per minute"),
    )
    session_duration: int = spec(
        "how long a visitor counts as active after the last request",
        5,
        unit="minutes",
        low=1,
        high=SESSION_LONGEST,
        form=FormSpec("limits", "Session length"),
    )
    disable_session_renewal: bool = spec(
        "end the session that long after admission, even while the visitor is active",
        False,
        form=FormSpec("limits", "Fixed session length"),
    )
    session_extensions: int = spec(
        "visitors inside may ask for more time (`?greenroom=session`): by how many session durations"
        " a fixed session may become longer; 0: not offered; not with several data centers",
        0,
        low=0,
        high=50,
        extension=True,
        form=FormSpec("more", "Extensions of a session"),
    )
    queueing_method: str = spec(
        "queueing method",
        "fifo",
        choices=METHODS,
        form=FormSpec(
            "waiting",
            "Queueing method",
            "Who is let in next.",
            choices=(
                "First come, first served",
                "Random",
                "Let everyone pass",
                "Reject new visitors",
            ),
        ),
    )
    queueing_status_code: int = spec(
        "HTTP status of the waiting page",
        200,
        choices=(200, 202, 429),
        form=FormSpec(
            "more",
            "HTTP status of the waiting page",
            "200 suits browsers; 429 tells programs and search engines to come back later.",
        ),
    )
    queue_all: bool = spec(
        "hold all new visitors; active visitors stay",
        False,
        form=FormSpec(
            "waiting",
            "Hold all new visitors",
            "Everyone who comes waits; visitors who are inside stay.",
        ),
    )
    suspended: bool = spec(
        "send all visitors to the origin and record nothing",
        False,
        form=FormSpec(
            "waiting",
            "Suspend the room",
            "Every visitor goes straight to your application, and nothing is counted.",
        ),
    )
    description: str = spec(
        "only your team sees it",
        "",
        high=10_000,
        form=FormSpec("waiting", "Note", "Only your team sees this."),
    )
    custom_page_html: str = spec(
        "Mustache template of the waiting page; empty = the built-in page", "", high=TEMPLATE_MAX
    )
    default_template_language: str = spec(
        "language of the built-in page",
        "en-US",
        choices=LANGUAGES,
        form=FormSpec("more", "Language of the waiting page", "Of the built-in page."),
    )
    follow_accept_language: bool = spec(
        "show the built-in page in the browser's language, when it is one of the 39",
        True,
        extension=True,
        form=FormSpec("more", "Follow the browser's language"),
    )
    json_response_enabled: bool = spec(
        "answer requests that prefer JSON (Accept: application/json) with JSON",
        False,
        form=FormSpec("more", "JSON for apps"),
    )
    cookie_attributes: CookieAttributes = spec(
        "attributes of the ticket cookie", CookieAttributes()
    )
    cookie_suffix: str = spec(
        "suffix of the cookie name, after `_`",
        "",
        pattern=r"[A-Za-z0-9_-]*",
        pattern_words=NAME_WORDS,
        high=64,
        form=FormSpec(
            "more",
            "Suffix of the cookie's name",
            "Needed with more hosts and paths. It follows _ in the name of the cookie.",
        ),
    )
    enabled_origin_commands: tuple[str, ...] = spec(
        "commands accepted from the Cf-Waiting-Room-Command header of origin responses", (), high=1
    )
    turnstile_mode: str = spec(
        "kept for compatible configurations", "invisible", choices=TURNSTILE_MODES
    )
    turnstile_action: str = spec(
        "kept for compatible configurations", "log", choices=TURNSTILE_ACTIONS
    )
    branding: Branding = spec(
        "name, logo, colour, message and help of the site, on the built-in page",
        Branding(),
        extension=True,
    )
    branding_messages: tuple[LocalMessage, ...] = spec(
        "the message of `branding` in other languages", (), high=len(LANGUAGES), extension=True
    )
    case_insensitive_paths: bool = spec(
        "ignore case when matching path prefixes",
        False,
        extension=True,
        form=FormSpec("more", "Ignore case in paths", "/Sale and /sale are the same."),
    )
    confirm_newcomers: bool | str = spec(
        "let a new visitor in only when the ticket has come back, so that requests without cookies"
        " do not use up the room; `auto`: while visitors whose ticket has not come back hold a"
        " quarter of either limit",
        "auto",
        choices=(False, True, "auto"),
        extension=True,
        form=FormSpec(
            "more",
            "Require cookies",
            choices=("Never", "Always", "Automatic (when bots are likely)"),
        ),
    )
    provisional_sessions: bool = spec(
        "while there is room to spare, let requests in for some seconds that could not wait:"
        " images, scripts, HEAD, webhooks, WebSockets",
        True,
        extension=True,
        form=FormSpec("more", "Let images and scripts in while there is room"),
    )
    frame_ancestors: str = spec(
        "sites that may show the waiting page in a frame, as in Content-Security-Policy: `'self'`,"
        " `https://partner.example`, `https://*.example.com`, `*`, separated by blanks; empty:"
        " none, and a frame on another site takes no place in line",
        "",
        pattern=rf"(?:{FRAME_SOURCE}(?: {FRAME_SOURCE})*)?",
        pattern_words=(
            "be 'self', *, or origins such as https://partner.example without a path, separated by"
            " blanks"
        ),
        high=1_000,
        extension=True,
        example="https://partner.example",
        form=FormSpec(
            "more",
            "Sites that may show the waiting page in a frame",
            "'self' for this site, or addresses such as https://partner.example,"
            " separated by blanks; * for every site. Empty: no site.",
        ),
    )
    cors_origins: tuple[str, ...] = spec(
        "origins of pages whose scripts may read that a visitor waits, with credentials (CORS),"
        " such as https://www.example.com; their preflights go on to the application without a"
        " place",
        (),
        high=CORS_ORIGINS_MAX,
        extension=True,
        form=FormSpec(
            "more",
            "Other origins whose scripts call this room",
            "One on each line, such as https://www.example.com. Their scripts can"
            " read that a visitor waits, and your application answers their CORS"
            " preflights.",
            lines=True,
        ),
    )
    same_status_for_all: bool = spec(
        "answer every held request with the waiting page and its status; false: what shows no page"
        " gets 503, crawlers too",
        False,
        extension=True,
        form=FormSpec(
            "more",
            "Send the waiting page to every request",
            "Otherwise images, scripts and crawlers get a 503.",
        ),
    )
    pace_admissions: bool = spec(
        "spread admissions evenly when a crowd comes after a quiet time; otherwise as many are let"
        " in at once as the limits allow",
        True,
        extension=True,
        form=FormSpec("more", "Spread admissions evenly"),
    )
    keep_streams_open: bool = spec(
        "leave WebSockets, event streams, downloads and uploads open when their session ends;"
        " false: they are closed with it",
        False,
        extension=True,
        form=FormSpec(
            "more",
            "Keep streams open after the session",
            "WebSockets, event streams, downloads and uploads go on when their"
            " visitor's session ends.",
        ),
    )
    strong_sessions: bool = spec(
        "hold a visitor who moves to another data center until the session has moved too; false:"
        " serve them meanwhile",
        False,
        extension=True,
        form=FormSpec("more", "Strong sessions between data centers"),
    )
    move_places: bool = spec(
        "visitors may continue on another device: the built-in page offers a link that moves the"
        " place or session",
        True,
        extension=True,
        form=FormSpec("more", "Places may move to another device"),
    )
    calendar_after_minutes: int = spec(
        "the built-in page offers a calendar entry while the estimated wait (median) is longer than"
        " this, in minutes; 0: never",
        0,
        low=0,
        high=1_440,
        extension=True,
        form=FormSpec("more", "Offer a calendar entry for waits over (minutes)"),
    )
    call_after_minutes: int = spec(
        "the built-in page offers a message when the turn comes, by e-mail or browser push, while the"
        " estimated wait (median) is longer than this, in minutes; only in order of arrival; 0: never",
        0,
        low=0,
        high=1_440,
        extension=True,
        form=FormSpec("more", "Offer a message for waits over (minutes)"),
    )
    claim_minutes: int = spec(
        "visitors with a calendar entry or a message to come may close the page; their place waits for"
        " so long after its turn, in minutes, and holds nobody up; `fifo` only; 0: the page stays open",
        10,
        low=0,
        high=CLAIM_LONGEST,
        extension=True,
        form=FormSpec("more", "Keep the place of an absent visitor after its turn (minutes)"),
    )
    on_unhealthy_origin: str = spec(
        "while a health check finds the origin unhealthy: `ignore` it, or `hold` new visitors;"
        " places and sessions are kept",
        "ignore",
        choices=("ignore", "hold"),
        extension=True,
        form=FormSpec(
            "more",
            "When the origin is unhealthy",
            "What happens to new visitors while the health checks of your application fail.",
            choices=("Ignore it", "Hold new visitors"),
        ),
    )
    capacity: str = spec(
        "whether the limit of active visitors follows the origin: `observe` records how many it could"
        " take, `suggest` proposes that number, `follow` applies it, within total_active_users",
        "fixed",
        choices=CAPACITY_MODES,
        extension=True,
        form=FormSpec(
            "more",
            "Follow the origin",
            "greenroom can find how many visitors your application takes, from how fast it answers."
            " It never exceeds the limits above.",
            choices=(
                "No, the limits are fixed",
                "Observe: show what the limit would be",
                "Suggest a limit",
                "Follow: lower the limit while the site is slow",
            ),
        ),
    )
    objective_ms: int = spec(
        "95th percentile of the time to the first byte of documents that the origin should keep;"
        " only with a `capacity` other than fixed",
        1_000,
        unit="milliseconds",
        low=OBJECTIVE_LEAST_MS,
        high=OBJECTIVE_MOST_MS,
        extension=True,
        form=FormSpec("more", "Slowest acceptable p95 of pages"),
    )
    floor: int = spec(
        "fewest active visitors that `follow` may set as the limit; the limit itself if that is less",
        1,
        low=1,
        high=LIMIT_MAX,
        extension=True,
        form=FormSpec("more", "Fewest active visitors when following"),
    )
    capacity_metrics: str = spec(
        "what measures the origin where greenroom does not see its answers: `push` (figures sent to"
        " the API), or a query of Prometheus, such as"
        ' `https://prometheus.example.com/api/v1/query?query=NAME_bucket{job="shop"}`; empty: the'
        " health checks of the origin",
        "",
        pattern=r"(push|https?://\S+)?",
        pattern_words="be push, or the URL of a query of Prometheus",
        example="push",
        high=2_048,
        extension=True,
        form=FormSpec("more", "Figures of the origin from elsewhere"),
    )
    priority_paths: tuple[str, ...] = spec(
        "paths, with all below them, that go first while connections to the origin are scarce, as"
        " what admitted visitors send (POST)",
        (),
        high=PRIORITY_PATHS_MAX,
        extension=True,
        form=FormSpec(
            "more", "Paths that go first", "One on each line, such as /checkout.", lines=True
        ),
    )
    offers_header: bool = spec(
        "responses of the application may say what is left, in the header Greenroom-Offers",
        False,
        extension=True,
        form=FormSpec("more", "The application says what is left (Greenroom-Offers)"),
    )
    native_pass: str = spec(
        "short-lived proof for visitors who are inside, which a proxy verifies without asking: JWT"
        " (hs256, es256) or nginx's secure_link",
        "off",
        choices=("off", *ANY_PASS),
        extension=True,
        form=FormSpec(
            "more",
            "Pass for a proxy in front",
            "A short-lived proof for active visitors, which your proxy checks without"
            " asking greenroom.",
            choices=(
                "None",
                "JWT with a shared secret (HS256)",
                "JWT with a public key (ES256)",
                "secure_link of nginx",
            ),
        ),
    )
    refresh_max_seconds: int = spec(
        "longest time between two refreshes of a waiting visitor; jitter of 10 % is added",
        20,
        unit="seconds",
        low=2,
        high=60,
        extension=True,
        form=FormSpec("more", "Refresh the waiting page at least every"),
    )
    line_table: bool = spec(
        "waiting pages find their place in a public table of the line, the same for all, and check"
        " in once a minute; only for fifo",
        False,
        extension=True,
        form=FormSpec("more", "Large-queue mode", "Only with “First come, first served”."),
    )
    sessions_ended_ms: int = 0
    """0: never. Not a setting."""
    let_in: int = 0
    """Raises both limits until `let_in_until_ms`. Not a setting."""
    let_in_until_ms: int = 0
    hold_until_ms: int = 0
    """An operator holds all new visitors until then. Not a setting."""
    operated: tuple[str, ...] = ()
    """Settings overridden by a live operation (`model.operation`)."""

    def __post_init__(self) -> None:
        problems = room_problems(vars_of(self))
        if problems:
            raise InvalidConfig(problems)
        if self.cors_origins:
            object.__setattr__(self, "cors_origins", tuple(map(normal_origin, self.cors_origins)))

    @property
    def routes(self) -> tuple[Route, ...]:
        return (Route(self.host, self.path), *self.additional_routes)

    @property
    def cookie_name(self) -> str:
        return f"__cfwaitingroom_{self.cookie_suffix}" if self.cookie_suffix else "__cfwaitingroom"

    @property
    def session_ms(self) -> int:
        return self.session_duration * 60_000

    @property
    def claim_ms(self) -> int:
        """0: visitors who close the page lose their place."""
        offered = self.calendar_after_minutes or self.call_after_minutes
        return self.claim_minutes * 60_000 if offered else 0

    @property
    def check_in_max_s(self) -> int:
        return CHECK_IN_S if self.line_table else self.refresh_max_seconds

    @property
    def renewal_age_ms(self) -> int:
        return min(5_000, max(1_000, self.session_ms // 60))


def room_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = field_problems(Room, values)
    wrong = wrong_fields(problems)
    if "enabled_origin_commands" not in wrong and set(values.get("enabled_origin_commands", ())) - {
        "revoke"
    }:
        problems.append(Problem("enabled_origin_commands", "may only contain revoke"))
    if "cors_origins" not in wrong:
        problems += cors_origin_problems(values.get("cors_origins", ()))
    if (
        "line_table" not in wrong
        and values.get("line_table")
        and values.get("queueing_method", "fifo") != "fifo"
    ):
        method = values["queueing_method"]
        problems.append(
            Problem(
                "line_table",
                f"needs queueing_method fifo, not {method}: only there an arrival has a place in"
                " line",
            )
        )
    problems += room_route_problems(values, wrong) + cookie_problems(values, wrong)
    return problems + shown_problems(values, wrong, LANGUAGES)


def limits_apart(total_active_users: int | None, new_users_per_minute: int | None) -> str:
    """Empty if Cloudflare allows these limits together. In files it is a note."""
    if total_active_users is None or new_users_per_minute is None:
        return ""
    if new_users_per_minute <= total_active_users:
        return ""
    return f"new_users_per_minute: must be at most total_active_users, {total_active_users}"
