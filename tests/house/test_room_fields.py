"""Every setting of a room can be changed in the dashboard, or stands below with the reason."""

import pytest

from greenroom.alerts.dashboard import notifications
from greenroom.configuration import rooms
from greenroom.configuration.dashboard import lists
from greenroom.configuration.dashboard import zones as zone_pages
from greenroom.dashboard.page_forms import branding_fields, page_document, shown_page
from greenroom.dashboard.pages.rooms import FORM, STEPS
from greenroom.health.dashboard import checks as health
from greenroom.model.branding import Branding
from greenroom.model.fields import FormSpec, form_fields, specs
from greenroom.model.health_check import HealthCheck, HttpCheck, TcpCheck
from greenroom.model.notification import AlertPolicy
from greenroom.model.room import Room
from greenroom.model.rule import RuleList
from greenroom.model.status_page import StatusPage
from greenroom.model.zone import Zone
from greenroom.status_page.dashboard import editor
from greenroom.web.api_schema import EXTENSION
from greenroom.web.pages.forms import Faults, field_view

ON_THE_PAGE_FORM = {"custom_page_html", "branding", "branding_messages"}
NOT_IN_A_FORM = {
    "id": "greenroom gives it",
    "cookie_attributes": "`auto` follows the zone's always_use_https, which has a form",
    "enabled_origin_commands": "belongs to the code of the application that sends them",
    "turnstile_mode": "has no effect here",
    "turnstile_action": "has no effect here",
}


def test_every_setting_of_a_room_has_a_form_or_a_reason() -> None:
    places = [set(FORM), ON_THE_PAGE_FORM, set(NOT_IN_A_FORM)]
    assert set().union(*places) == set(specs(Room))
    assert sum(map(len, places)) == len(specs(Room))


NOT_IN_THE_ZONE_FORM = {
    "id": "greenroom gives it",
    "account_id": "there is one account",
    "search_engine_crawler_bypass": "a setting of its own in the API, off by default",
    "trusted_proxies": "a wrong one lets visitors forge addresses: for the API",
    "ambiguous_paths": "for the API: its words are those of HTTP",
    "merge_slashes": "for the API: its words are those of HTTP",
    "pass_well_known": "for the API: right for almost every site",
}


def test_every_setting_of_a_zone_has_a_form_or_a_reason() -> None:
    assert set(zone_pages.FORM) == set(form_fields(Zone))
    assert set(zone_pages.FORM) | set(NOT_IN_THE_ZONE_FORM) == set(specs(Zone))


def test_every_setting_of_a_health_check_has_a_form() -> None:
    assert set(health.FORM) == set(form_fields(HealthCheck))
    assert set(specs(HealthCheck)) - set(health.FORM) == {
        "id",
        "check_regions",  # a list of boxes
        "http_config",
        "tcp_config",
    }
    assert set(health.PART_FORM) == set(specs(HttpCheck)) >= set(specs(TcpCheck))


@pytest.mark.parametrize(
    ("record", "form", "elsewhere"),
    [
        (StatusPage, {**editor.TEXTS, **editor.SHOWN}, set()),
        (RuleList, lists.FORM, {"items"}),
        (AlertPolicy, notifications.FORM, {"emails", "webhook_ids", "pagerduty_ids", "filters"}),
    ],
)
def test_every_field_of_a_small_form_is_in_it(
    record: type, form: dict[str, FormSpec], elsewhere: set[str]
) -> None:
    assert form == form_fields(record)
    assert set(specs(record)) - set(form) == {"id", *elsewhere}


def test_the_section_of_every_setting_is_in_the_form() -> None:
    assert set(FORM) == set(form_fields(Room))
    assert all(form_fields(Room, section) for section, _ in STEPS)


def test_the_page_form_shows_and_saves_the_settings_of_the_page() -> None:
    assert (
        set(
            shown_page(
                Room(name="r", host="h.example", total_active_users=1, new_users_per_minute=1)
            )
        )
        >= ON_THE_PAGE_FORM
    )
    saved = page_document({}, "")
    assert set(saved) | set(saved[EXTENSION]) >= ON_THE_PAGE_FORM
    assert set(saved[EXTENSION]["branding"]) == set(specs(Branding))
    fields = {one.name for one in branding_fields({}, Faults())}
    assert fields | {"logo"} == set(specs(Branding))  # a logo is a file: it has its own control


@pytest.mark.parametrize("name", FORM)
def test_each_choice_has_a_label(name: str) -> None:
    shown = field_view(rooms.ROOM, name, "", Faults())
    assert len(shown.choices) == len(specs(Room)[name].choices)
    assert shown.label == FORM[name].label
