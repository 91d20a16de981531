"""Derives the values of fields from an arrival: address parts, arguments, headers, cookies,
languages.

Strings hold one byte per character (latin-1). Bounded only by the gateway's limit of the request
head.
"""

import re
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from greenroom.model.visit import Arrival
from greenroom.rules.addresses import client_key

# What rules can read of a request; derived values are lazy.


class Place(msgspec.Struct, frozen=True):
    """`country` is ISO 3166-1 alpha-2, `continent` one of AF AN AS EU NA OC SA; unknown parts are
    empty or 0.
    """

    country: str = ""
    continent: str = ""
    region: str = ""
    region_code: str = ""
    city: str = ""
    postal_code: str = ""
    metro_code: str = ""
    latitude: str = ""
    longitude: str = ""
    subdivision_1: str = ""
    subdivision_2: str = ""
    timezone: str = ""
    in_european_union: bool = False
    as_number: int = 0


class Lookups(Protocol):
    """Local data, in memory: both methods stand in the path of a request."""

    def place(self, client: str) -> Place: ...

    def crawler(self, client: str, user_agent: str) -> str:
        """Of a VERIFIED crawler, or empty."""


class NothingKnown:
    _NOWHERE = Place()

    def place(self, client: str) -> Place:  # noqa: ARG002
        return self._NOWHERE

    def crawler(self, client: str, user_agent: str) -> str:  # noqa: ARG002
        return ""


NOTHING_KNOWN = NothingKnown()


class RequestFacts(msgspec.Struct):
    arrival: Arrival
    now_ms: int
    lookups: Lookups = NOTHING_KNOWN
    memo: dict[str, Any] = {}  # msgspec gives every RequestFacts its own


ReadFact = Callable[[Any], Any]
"""None is the missing value."""


def once(name: str, read: Callable[[RequestFacts], Any]) -> Callable[[RequestFacts], Any]:
    def remembered(facts: RequestFacts) -> Any:
        memo = facts.memo
        if name in memo:
            return memo[name]
        value = memo[name] = read(facts)
        return value

    return remembered


Pairs = list[tuple[str, str]]
Lists = dict[str, list[str]]

_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")


def percent_decoded(text: str) -> str:
    """Malformed escapes stay unchanged."""
    return _PERCENT.sub(lambda found: chr(int(found[1], 16)), text) if "%" in text else text


def extension(path: str) -> str:
    """Behind the last dot of the last segment, lower case; empty for `/.mp3`, `/file.` and without
    dot.
    """
    name = path[path.rfind("/") + 1 :]
    dot = name.rfind(".")
    return name[dot + 1 :].lower() if dot > 0 else ""


def argument_pairs(query: str) -> Pairs:
    """Undecoded, in order; a name without `=` has an empty value."""
    pairs = [part.partition("=") for part in query.split("&") if part]
    return [(name, value) for name, _, value in pairs]


def lists_by_name(pairs: Pairs) -> Lists:
    """Values of one name keep their order."""
    found: Lists = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def header(name: bytes) -> Any:
    """Joins every line of that name by `, ` (`; ` for cookies); empty when there is none."""
    joint = b"; " if name == b"cookie" else b", "

    def read(facts: RequestFacts) -> str:
        values = [value for key, value in facts.arrival.headers if key == name]
        return (values[0] if len(values) == 1 else joint.join(values)).decode("latin-1")

    return read


def header_values(facts: RequestFacts, name: str) -> list[str] | None:
    """Without building the whole map."""
    wanted = name.encode("latin-1")
    return [
        value.decode("latin-1") for key, value in facts.arrival.headers if key == wanted
    ] or None


def header_pairs(facts: RequestFacts) -> Pairs:
    return [
        (key.decode("latin-1"), value.decode("latin-1")) for key, value in facts.arrival.headers
    ]


def header_names(facts: RequestFacts) -> list[str]:
    """In order, in the case in which they were sent where known; else lower case."""
    sent = [line.partition(b":")[0] for line in facts.arrival.lines.split(b"\r\n")]
    kept = [name.decode("latin-1") for name in sent if name and b"_" not in name]
    known = [name.decode("latin-1") for name, _ in facts.arrival.headers]
    return kept if [name.lower() for name in kept] == known else known


def cookies(facts: RequestFacts) -> Lists:
    """Names are percent-decoded and equal ones merged; values are unchanged."""
    pairs = []
    for part in cookie_header(facts).split(";"):
        name, equals, value = part.strip(" \t").partition("=")
        if equals:
            pairs.append((percent_decoded(name), value))
    return lists_by_name(pairs)


def languages(facts: RequestFacts) -> list[str]:
    """Best first, equal weights in the order sent, without `*` and refused ones (q=0)."""
    weighed: list[tuple[float, int, str]] = []
    for part in accept_language(facts).split(","):
        tag, *parameters = (piece.strip(" \t") for piece in part.split(";"))
        weight = next((_weight(item[2:]) for item in parameters if item[:2].lower() == "q="), 1.0)
        if tag and tag != "*" and weight > 0:
            weighed.append((-weight, len(weighed), tag))
    return [tag for _, _, tag in sorted(weighed)]


def _weight(text: str) -> float:
    return float(text) if re.fullmatch(r"[01](\.[0-9]{0,3})?", text) else 0.0


def uri(facts: RequestFacts) -> str:
    arrival = facts.arrival
    return f"{arrival.path}?{arrival.query}" if arrival.query else arrival.path


def full_uri(facts: RequestFacts) -> str:
    return f"{facts.arrival.scheme}://{facts.arrival.host}{uri(facts)}"


def raw_uri(facts: RequestFacts) -> str:
    """As sent (canonical when the gateway kept nothing else)."""
    target = facts.arrival.target.decode("latin-1")
    if target.startswith("/") or not target:
        return target or uri(facts)
    slash = target.find("/", target.find("://") + 3) if "://" in target else -1
    return target[slash:] if slash >= 0 else uri(facts)


def raw_full_uri(facts: RequestFacts) -> str:
    return f"{facts.arrival.scheme}://{facts.arrival.host}{raw_uri(facts)}"


def raw_path(facts: RequestFacts) -> str:
    return raw_uri(facts).partition("?")[0]


def raw_query(facts: RequestFacts) -> str:
    return raw_uri(facts).partition("?")[2]


def client(facts: RequestFacts) -> int | None:
    return client_key(facts.arrival.client)


def listener_address(facts: RequestFacts) -> int | None:
    return client_key(facts.arrival.server[0])


def listener_port(facts: RequestFacts) -> int | None:
    return facts.arrival.server[1] or None


cookie_header = header(b"cookie")
accept_language = header(b"accept-language")
user_agent = once("user agent", header(b"user-agent"))
place = once("place", lambda facts: facts.lookups.place(facts.arrival.client))
crawler = once(
    "crawler", lambda facts: facts.lookups.crawler(facts.arrival.client, user_agent(facts))
)
arguments = once("arguments", lambda facts: argument_pairs(facts.arrival.query))
raw_arguments = once("raw arguments", lambda facts: argument_pairs(raw_query(facts)))
headers = once("headers", header_pairs)
