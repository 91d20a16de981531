"""What an operator does every day is apart from the installation."""

from itertools import groupby

from greenroom.dashboard.navigation import NAVIGATION


def test_daily_work_and_installation_are_groups_of_their_own() -> None:
    groups = [name for name, _ in groupby(NAVIGATION, key=lambda item: item.group)]
    assert groups == ["Daily work", "Setup", "Installation", "Help"]
    daily = {item.path for item in NAVIGATION if item.group == "Daily work"}
    assert {"/rooms", "/events", "/audit"} <= daily
    assert daily.isdisjoint({"/keys", "/tokens", "/accounts", "/processes"})
