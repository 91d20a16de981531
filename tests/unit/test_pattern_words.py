"""A value that does not fit is refused in words: the people who typed it do not read regular
expressions.
"""

import importlib
import pkgutil
import re
from dataclasses import is_dataclass

import pytest

import greenroom.config_file
import greenroom.model
from greenroom.model.account import Account
from greenroom.model.branding import Branding
from greenroom.model.event import Event
from greenroom.model.fields import Spec, check_value, specs
from greenroom.model.notification import AlertPolicy
from greenroom.model.room import Room
from greenroom.model.zone import Zone


def _described() -> list[tuple[str, Spec]]:
    found = {}
    for package in (greenroom.model, greenroom.config_file):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for record in vars(importlib.import_module(module.name)).values():
                if isinstance(record, type) and is_dataclass(record):
                    found |= {
                        f"{record.__module__}.{record.__name__}.{name}": rule
                        for name, rule in specs(record).items()
                    }
    return sorted(found.items())


def test_every_pattern_is_told_in_words() -> None:
    patterns = [(name, rule) for name, rule in _described() if rule.pattern]
    assert len(patterns) > 20
    assert [name for name, rule in patterns if not re.match("(be|have) ", rule.pattern_words)] == []


def test_an_empty_number_is_called_empty() -> None:
    problem = check_value("total_active_users", "", int, specs(Room)["total_active_users"])
    assert problem is not None
    assert problem.reason == "must be a whole number, and is empty"


@pytest.mark.parametrize(
    ("record", "name", "typed", "said"),
    [
        (
            Zone,
            "name",
            "https://Example.com/",
            "must be a domain name in lower case without scheme, port and path, such as example.com",
        ),
        (
            Room,
            "name",
            "my shop",
            "must have only letters (a to z, A to Z), digits, - and _, not 'my shop'",
        ),
        (Event, "name", "", "must not be empty"),
        (Account, "name", "Ada", "must have only lower-case letters"),
        (Branding, "message", "Back soon.\nSorry", "must be one line without { and }"),
        (
            Branding,
            "accent_color",
            "blue",
            "must be # and six hexadecimal digits such as #0b5fff, not 'blue'",
        ),
        (
            AlertPolicy,
            "alert_interval",
            "30 minutes",
            "must be numbers with the unit h, m, s or ms, such as 30m or 1h30m",
        ),
    ],
)
def test_what_a_person_typed_is_refused_in_words(
    record: type, name: str, typed: str, said: str
) -> None:
    problem = check_value(name, typed, str, specs(record)[name])
    assert problem is not None
    assert problem.reason.startswith(said)
