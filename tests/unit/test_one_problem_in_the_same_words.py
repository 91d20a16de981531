"""The same wrong value in a configuration file, a call of the API and a whole configuration to
apply: the same problems in the same words.
"""

import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, NamedTuple

import pytest

from greenroom.alerts import destinations, policies
from greenroom.alerts.view import NotificationView
from greenroom.config_file.load import config_of
from greenroom.configuration import events, lists, rooms, rules
from greenroom.errors import InvalidConfig, Problem
from greenroom.health import checks
from greenroom.model.change import applied
from greenroom.model.configuration import Configuration
from greenroom.model.notification import Webhook
from greenroom.status_page import pages
from greenroom.transfer.export_import import make_true
from greenroom.web.api_schema import EXTENSION, ApiSchema
from greenroom.web.config_service import ChangeContext, ConfigChange
from greenroom.web.refusals import Refused

Document = dict[str, Any]
LIMITS = {"total_active_users": 300, "new_users_per_minute": 300}
SHOP = {"name": "shop", "host": "shop.example.com", "path": "/a", **LIMITS}
NUMBERS = count()


def no_problems(_pointer: str, _url: str) -> list[Problem]:
    return []


def moment() -> ChangeContext:
    return ChangeContext(1_700_000_000_000, lambda: f"new-{next(NUMBERS)}")


def known() -> Configuration:
    whole = {"zones": [{"id": "z", "name": "example.com", "waiting_rooms": [{"id": "r", **SHOP}]}]}
    changes = make_true(whole, no_problems)(Configuration(), moment()).changes
    return applied(Configuration(), changes, 1)[0]


KNOWN = known()


class Kind(NamedTuple):
    """`right` is in the words of a file; `nested` puts it into those of the API."""

    schema: ApiSchema
    right: Document
    in_file: Callable[..., Document]
    create: Callable[[Document], ConfigChange]
    in_whole: Callable[..., Document]
    but: tuple[str, ...] = ()
    nested: Callable[[Document], Document] = dict


def in_shop(**more: Any) -> Document:
    return {"rooms": [SHOP | more]}


def in_zone(**more: Any) -> Document:
    return {"zones": [{"name": "example.com", **more}]}


def with_mechanisms(document: Document) -> Document:
    found = dict(document)
    emails = found.pop("emails", [])
    return found | {"mechanisms": {"email": [{"id": each} for each in emails]}}


KINDS = {
    "room": Kind(
        rooms.ROOM,
        {"name": "other", "host": "other.example.com", "path": "/", **LIMITS},
        lambda *all: {"rooms": [*all]},
        lambda document: rooms.create("z", document),
        lambda *all: in_zone(waiting_rooms=[*all]),
    ),
    "event": Kind(
        events.EVENT,
        {
            "name": "sale",
            "event_start_time": "2030-01-01T10:00:00Z",
            "event_end_time": "2030-01-01T12:00:00Z",
        },
        lambda *all: in_shop(events=[*all]),
        lambda document: events.create("z", "r", document),
        lambda *all: in_zone(waiting_rooms=[SHOP | {"events": [*all]}]),
    ),
    "rule": Kind(
        rules.RULE,
        {"action": "bypass_waiting_room", "expression": "ssl"},
        lambda *all: in_shop(rules=[*all]),
        lambda document: rules.append("z", "r", document),
        lambda *all: in_zone(waiting_rooms=[SHOP | {"rules": [*all]}]),
        but=("action",),  # a file may leave it out
    ),
    "list": Kind(
        lists.LIST,
        {"name": "office", "kind": "ip"},
        lambda *all: {"lists": [*all]},
        lists.create,
        lambda *all: {"lists": [*all]},
    ),
    "health check": Kind(
        checks.HEALTH_CHECK,
        {"name": "up", "address": "www.example.com"},
        lambda *all: {"health_checks": [*all]},
        lambda document: checks.create("z", document),
        lambda *all: in_zone(health_checks=[*all]),
    ),
    "status page": Kind(
        pages.PAGE,
        {"host": "status.example.com", "title": "x"},
        lambda *all: {"status_listen": "127.0.0.1:8090", "status_pages": [*all]},
        pages.create,
        lambda *all: {"status_pages": [*all]},
    ),
    "webhook": Kind(
        destinations.WEBHOOK,
        {"name": "w", "url": "https://example.com/x"},
        lambda *all: {"webhooks": [*all]},
        lambda document: destinations.save(
            None, document, NotificationView(), Webhook(name="x", url="https://example.com")
        ),
        lambda *all: {"webhooks": [*all]},
        but=("id", "url", "secret", "channel"),  # files of their own; empty: recognised
    ),
    "policy": Kind(
        policies.POLICY,
        {"name": "p", "alert_type": "greenroom_queueing", "emails": ["a@example.com"]},
        lambda *all: {"alert_policies": [*all]},
        policies.create,
        lambda *all: {"alert_policies": [*all]},
        but=("id", "mechanisms"),
        nested=with_mechanisms,
    ),
}

WRONG = ("", " ", "x" * 5_000, 0, -1, 10**12, None, True, [], ["x"], [1], {}, {"x": 1}, 1.5, "é\n")
LEFT_OUT = object()


def spoiled(kind: Kind) -> Iterable[tuple[str, Any, Document]]:
    names = [field.name for field in kind.schema.fields if not field.rule.read_only]
    for name in names:
        for value in (*WRONG, LEFT_OUT):
            if name not in kind.but:
                wrong = {key: each for key, each in kind.right.items() if key != name}
                yield name, value, wrong if value is LEFT_OUT else {**wrong, name: value}


def for_api(kind: Kind, document: Document) -> Document:
    ours = {field.name for field in kind.schema.fields if field.rule.extension}
    inner = {name: value for name, value in document.items() if name in ours}
    outer = {name: value for name, value in document.items() if name not in ours}
    return kind.nested(outer) | ({EXTENSION: inner} if inner else {})


def of_file(document: Document) -> set[str]:
    try:
        config_of({"origin": "http://o.example", **document})
    except InvalidConfig as error:
        return {words(problem.reason) for problem in error.problems}
    return set()


def of_plan(plan: ConfigChange, configuration: Configuration) -> set[str]:
    try:
        plan(configuration, moment())
    except Refused as refused:
        return {words(fault.message) for fault in refused.faults}
    return set()


def words(message: str) -> str:
    """Without the places that stand before them."""
    return re.sub(r"^([^ :]+( \(line \d+\))?: )+", "", message)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_wrong_value_has_the_same_problems_in_the_same_words_wherever_it_was_written(
    kind: Kind,
) -> None:
    wrong = 0
    for name, value, document in spoiled(kind):
        written = for_api(kind, document)
        found = of_file(kind.in_file(document))
        assert of_plan(kind.create(written), KNOWN) == found, (name, value)
        whole = make_true(kind.in_whole(written), no_problems)
        assert of_plan(whole, Configuration()) == found, (name, value)
        wrong += bool(found)
    assert wrong > 10


ROOM, EVENT, FOLDED = KINDS["room"].right, KINDS["event"].right, {"case_insensitive_paths": True}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("room", ROOM, ROOM | {"name": "b"}),
        ("room", ROOM, ROOM | {"host": "b.example.com"}),
        ("room", ROOM | {"path": "/b"}, ROOM | {"name": "b", "path": "/B", **FOLDED}),
        (
            "room",
            ROOM | {"path": "/a", **FOLDED},
            ROOM | {"name": "b", "path": "/b", **FOLDED},
        ),
        ("event", EVENT, EVENT | {"name": "b"}),
        (
            "event",
            EVENT,
            EVENT | {key: f"2031{EVENT[key][4:]}" for key in EVENT if key.endswith("_time")},
        ),
        ("list", KINDS["list"].right, KINDS["list"].right),
        ("status page", KINDS["status page"].right, KINDS["status page"].right),
    ],
)
def test_two_things_that_clash_are_refused_in_the_same_words_wherever_they_were_written(
    name: str, first: Document, second: Document
) -> None:
    kind = KINDS[name]
    written = [for_api(kind, document) for document in (first, second)]
    found = of_file(kind.in_file(first, second))
    assert len(found) == 1
    changes = kind.create(written[0])(KNOWN, moment()).changes
    assert of_plan(kind.create(written[1]), applied(KNOWN, changes, 1)[0]) == found
    assert of_plan(make_true(kind.in_whole(*written), no_problems), Configuration()) == found
