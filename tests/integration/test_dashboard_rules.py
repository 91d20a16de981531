"""Bypass rules in the dashboard: made from rows or as text, ordered, switched, removed, and never
lost between two people.
"""

import re

import httpx
import pytest
from dashboard_rig import DashboardRig, Visitor

from greenroom.model.rule import Rule

RULES = "/zones/z2/rooms/r2/rules"


@pytest.fixture
def operator(dashboard: DashboardRig) -> Visitor:
    return dashboard.person("operator", "z2")


def saved(dashboard: DashboardRig) -> list[Rule]:
    entry = dashboard.store.read().rules.get("r2")
    return list(entry.record.rules) if entry else []


def add(operator: Visitor, expression: str, description: str = "") -> None:
    answer = operator.post(
        f"{RULES}/new", step="save", expression=expression, description=description, enabled="true"
    )
    assert answer.status_code == 303, answer.text


def revision(page: httpx.Response) -> str:
    found = re.search(r'name="revision" value="([^"]*)"', page.text)
    assert found is not None
    return found[1]


ROW = {"field-0-0": "ip.src", "operator-0-0": "in", "value-0-0": "10.0.0.0/8\n192.0.2.7"}


def test_rows_become_a_rule_and_are_shown_again(dashboard: DashboardRig, operator: Visitor) -> None:
    header = {
        "field-0-1": "http.request.headers",
        "key-0-1": "x-team",
        "operator-0-1": "eq",
        "value-0-1": "red",
    }
    answer = operator.post(
        f"{RULES}/new",
        step="save",
        description="Staff",
        enabled="true",
        expression="",
        **ROW,
        **header,
    )
    assert answer.status_code == 303
    (rule,) = saved(dashboard)
    assert (
        rule.expression
        == 'ip.src in {10.0.0.0/8 192.0.2.7} and any(http.request.headers["x-team"][*] eq "red")'
    )
    assert (rule.description, rule.enabled) == ("Staff", True)
    shown = operator.get(f"{RULES}/{rule.id}/edit").text
    assert 'value="x-team"' in shown
    assert "10.0.0.0/8\n192.0.2.7</textarea>" in shown


def test_what_rows_cannot_say_is_edited_as_text(dashboard: DashboardRig, operator: Visitor) -> None:
    add(operator, 'lower(http.host) eq "a.example"')
    shown = operator.get(f"{RULES}/{saved(dashboard)[0].id}/edit").text
    assert "edited as text" in shown
    assert 'id="rows"' not in shown


def test_without_scripts_buttons_add_and_drop_conditions_and_write_the_expression(
    operator: Visitor,
) -> None:
    more = operator.post(f"{RULES}/new", step="add-0", **ROW)
    assert more.text.count("data-row>") == 2
    group = operator.post(f"{RULES}/new", step="group-0", **ROW)
    assert group.text.count("data-group>") == 2
    dropped = operator.post(
        f"{RULES}/new", step="drop-0-0", **ROW, **{"field-0-1": "ssl", "operator-0-1": "true"}
    )
    assert dropped.text.count("data-row>") == 1
    written = operator.post(f"{RULES}/new", step="write", **ROW)
    assert "ip.src in {10.0.0.0/8 192.0.2.7}</textarea>" in written.text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"expression": "ip.src in {1.2.3.4"}, "expected"),
        ({"expression": "nothing.like.this"}, "unknown"),
        ({"field-0-0": "ip.src", "operator-0-0": "in", "value-0-0": "here"}, "is not an address"),
        ({"expression": "ssl", "description": "x" * 501}, "500"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_beside_its_field_and_nothing_is_saved(
    dashboard: DashboardRig, operator: Visitor, form: dict[str, str], said: str
) -> None:
    answer = operator.post(f"{RULES}/new", **{"step": "save", **form})
    assert answer.status_code == 400
    assert said in answer.text
    assert saved(dashboard) == []


def test_rules_are_moved_switched_and_removed(dashboard: DashboardRig, operator: Visitor) -> None:
    for name in ("one", "two", "three"):
        add(operator, "ssl", name)
    order = [rule.id for rule in saved(dashboard)]

    def step(rule_id: str, what: str) -> None:
        answer = operator.post(
            f"{RULES}/{rule_id}/change", step=what, revision=revision(operator.get(RULES))
        )
        assert answer.status_code == 303

    step(order[2], "up")
    assert [rule.description for rule in saved(dashboard)] == ["one", "three", "two"]
    step(order[0], "down")
    assert [rule.description for rule in saved(dashboard)] == ["three", "one", "two"]
    step(order[0], "switch")
    assert [rule.enabled for rule in saved(dashboard)] == [True, False, True]
    step(order[1], "remove")
    assert [rule.description for rule in saved(dashboard)] == ["three", "one"]


def test_a_change_on_a_page_that_is_out_of_date_is_refused(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    add(operator, "ssl", "one")
    rule_id, before = saved(dashboard)[0].id, revision(operator.get(RULES))
    add(operator, "not ssl", "of another person")
    assert (
        operator.post(f"{RULES}/{rule_id}/change", step="remove", revision=before).status_code
        == 409
    )
    edited = operator.post(
        f"{RULES}/{rule_id}/edit", step="save", expression="cf.client.bot", revision=before
    )
    assert edited.status_code == 409
    assert "another person" in edited.text
    assert [rule.expression for rule in saved(dashboard)] == ["ssl", "not ssl"]


def test_the_form_is_told_at_once_what_is_wrong_and_where(operator: Visitor) -> None:
    wrong = operator.post(f"{RULES}/check", of="expression", expression="ssl and unheard").json()
    assert [(fault["from"], fault["to"]) for fault in wrong["faults"]] == [(8, 15)]
    right = operator.post(f"{RULES}/check", of="rows", **ROW).json()
    assert right == {"expression": "ip.src in {10.0.0.0/8 192.0.2.7}", "problems": [], "faults": []}
    missing = operator.post(f"{RULES}/check", of="rows", **{**ROW, "value-0-0": ""}).json()
    assert missing["expression"] is None
    assert missing["problems"]


def test_viewers_see_the_rules_and_no_way_to_change_them(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    add(operator, 'http.host eq "<b>x</b>"', "<script>alert(1)</script>")
    shown = dashboard.person("viewer", "z2").get(RULES).text
    assert "&lt;script&gt;" in shown
    assert "<script>alert" not in shown
    assert "Remove" not in shown
    assert "New rule" not in shown


def test_a_process_without_visitors_says_that_it_cannot_try(operator: Visitor) -> None:
    assert "cannot tell" in operator.get(f"{RULES}/try?url=https%3A%2F%2Fz2.example%2F").text
