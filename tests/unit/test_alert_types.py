"""The table of alert types: every row has its fields, a text that needs nothing else, filters that
read its own fields, and an example.
"""

import pytest

from greenroom.alerts.rules.matching import wants
from greenroom.model.alert_types import ALERTS, example, make
from greenroom.model.notification import AlertPolicy

every_type = pytest.mark.parametrize("row", ALERTS.values(), ids=list(ALERTS))


@every_type
def test_the_example_has_every_field_and_its_text_tells_the_subject(row) -> None:
    alert = example(row, 1_000)
    assert set(alert.data) == set(row.fields) == set(row.example)
    assert "{" not in alert.text
    assert alert.text.endswith(".")
    told = {row.example_subject, *(str(value) for value in row.example.values())}
    assert any(word in alert.text for word in told)


@every_type
def test_the_end_of_an_incident_has_another_text(row) -> None:
    if row.paired:
        end = make(row.type, "end", 2, "x", row.example, subject_name=row.example_subject)
        assert end.text != example(row, 1).text
        assert "{" not in end.text
    else:
        assert example(row, 1).state == "none"


@every_type
def test_a_policy_without_filters_takes_the_example(row) -> None:
    filters = {
        name: (str(row.example[name]),)
        for name, described in row.filters.items()
        if described.bound
    }
    assert wants(AlertPolicy(name="all", alert_type=row.type, filters=filters), example(row, 1))


@every_type
def test_every_filter_passes_its_own_value_and_stops_another(row) -> None:
    alert = make(
        row.type,
        "start",
        1,
        "x",
        row.example,
        subject_id="s" * 32,
        subject_name=row.example_subject,
        zone_id="z" * 32,
    )
    for name, described in row.filters.items():
        bound = {
            name: (str(row.example[name]),) for name, other in row.filters.items() if other.bound
        }
        good = described.read(alert)[0]
        other = "9999" if described.bound else "another"
        assert wants(
            AlertPolicy(name="p", alert_type=row.type, filters={**bound, name: (other, good)}),
            alert,
        ), name
        assert not wants(
            AlertPolicy(name="p", alert_type=row.type, filters={**bound, name: (other,)}), alert
        ), name


def test_a_source_that_forgets_a_field_or_invents_one_is_told_which() -> None:
    with pytest.raises(KeyError, match="reason"):
        make("greenroom_config_refused", "start", 1, "x", {"source": "file", "reason": "?"})
    with pytest.raises(KeyError):
        make("no_such_type", "start", 1, "x", {})
