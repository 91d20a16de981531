"""What stands below a field of a form helps the person who fills it in: it adds to the label, and
is not written for programmers.
"""

import re

import pytest

from greenroom.configuration import rooms, zones
from greenroom.configuration.dashboard import zones as zone_pages
from greenroom.dashboard.pages import rooms as room_pages
from greenroom.health import checks as health_checks
from greenroom.health.dashboard import checks as health
from greenroom.model.fields import specs
from greenroom.model.health_check import HttpCheck
from greenroom.web.pages.forms import Faults, field_view, help_of


def _shown() -> list[tuple[str, str, str]]:
    """(field, label, help) of the forms of zones, rooms and health checks."""
    tables = (
        (zones.ZONE, zone_pages.FORM),
        (rooms.ROOM, room_pages.FORM),
        (health_checks.HEALTH_CHECK, health.FORM),
    )
    found = [
        (name, form.label, field_view(schema, name, "", Faults()).help)
        for schema, forms in tables
        for name, form in forms.items()
    ]
    return found + [
        (name, form.label, help_of(specs(HttpCheck)[name]))
        for name, form in health.PART_FORM.items()
    ]


@pytest.mark.parametrize(
    ("name", "label", "told"), _shown(), ids=lambda value: value if "_" in value else ""
)
def test_help_adds_to_its_label_and_is_written_for_people(name: str, label: str, told: str) -> None:
    assert told.rstrip(".").lower() != label.lower()
    assert told.split()[0].lower() not in ("true:", "true", "false:"), told
    assert not re.search("[a-z]_[a-z]|unique name|segment", told), told
