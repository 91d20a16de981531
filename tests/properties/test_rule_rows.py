"""Rules as rows: what rows say is written as an expression that can be used, and read back as the
same rows.
"""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from greenroom.configuration.dashboard.rule_rows import (
    ROW_FIELDS,
    ROW_OPERATORS,
    ConditionRow,
    expression_of,
    kind_of_field,
    operators_of,
    row_problem,
    rows_of,
)
from greenroom.model.rule import EXPRESSION_MAX
from greenroom.rules import ListMembership, rule_faults
from greenroom.rules.syntax import (
    BOOLEAN,
    INTEGER,
    IP,
    STRING,
    STRINGS_BY_NAME,
)

TEXT = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x24F, exclude_characters="*\x7f\x85\xa0"),
    min_size=1,
    max_size=12,
)
ADDRESS = st.one_of(st.ip_addresses().map(str), st.sampled_from(["10.0.0.0/8", "2001:db8::/32"]))
VALUES = {STRING: TEXT, STRINGS_BY_NAME: TEXT, INTEGER: st.integers(0, 2**31).map(str), IP: ADDRESS}


def lists(kind):
    return {"staff": ListMembership(kind, frozenset())}


@st.composite
def rows(draw) -> ConditionRow:
    field = draw(st.sampled_from(sorted(ROW_FIELDS)))
    kind = kind_of_field(field)
    operator = draw(
        st.sampled_from([word for word in operators_of(field) if not word.endswith("list")])
    )
    key = draw(TEXT) if kind is STRINGS_BY_NAME else ""
    if kind is BOOLEAN:
        return ConditionRow(field, operator)
    values = draw(
        st.lists(
            VALUES[kind],
            min_size=1,
            max_size=4 if ROW_OPERATORS[operator].several else 1,
            unique=True,
        )
    )
    row = ConditionRow(field, operator, "\n".join(values), key)
    assume(operator != "wildcard" or not row_problem(row))
    return row


GROUPS = st.lists(st.lists(rows(), min_size=1, max_size=3), min_size=1, max_size=3)


@given(groups=GROUPS)
def test_rows_are_written_as_a_rule_that_can_be_used_and_are_read_back_the_same(
    groups: list[list[ConditionRow]],
) -> None:
    expression = expression_of(groups)
    if len(expression) <= EXPRESSION_MAX:
        assert rule_faults(expression) == ()
        assert rows_of(expression) == groups


@given(text=st.text(max_size=60), field=st.sampled_from(["ip.src", "ip.src.asnum"]))
def test_a_value_never_says_more_than_its_own_condition(text: str, field: str) -> None:
    row = ConditionRow(field, "in", text)
    if not row_problem(row):
        read = rows_of(expression_of([[row]]))
        assert read is not None
        assert [(one.field, one.operator) for group in read for one in group] == [(field, "in")]


@pytest.mark.parametrize("pattern", ["\\", "shop\\a", "**"])
def test_a_pattern_that_no_rule_accepts_is_refused_in_its_row(pattern: str) -> None:
    assert "wildcard" in row_problem(ConditionRow("http.host", "wildcard", pattern))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (ConditionRow("ip.src", "in list", "staff"), IP),
        (ConditionRow("http.host", "not in list", "staff"), STRING),
    ],
)
def test_lists_are_named_in_rows(row: ConditionRow, kind) -> None:
    expression = expression_of([[row]])
    assert rule_faults(expression, lists(kind)) == ()
    assert rows_of(expression) == [[row]]


@pytest.mark.parametrize(
    "expression",
    [
        "ssl xor cf.client.bot",
        'lower(http.host) eq "x"',
        "not (ssl and cf.client.bot)",
        "ip.src.lat",
        'http.request.headers["x"][0] eq "y"',
        "true",
        'ssl and (ip.src.asnum eq 1 or http.host eq "x")',
        "ip.src in {1.2.3.4",
        "",
    ],
)
def test_what_rows_cannot_say_stays_text(expression: str) -> None:
    assert rows_of(expression) is None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            ConditionRow("ip.src", "in", "1.2.3.4} or ssl or ip.src in {1.2.3.5"),
            "is not an address",
        ),
        (ConditionRow("ip.src.asnum", "eq", "0x1 or ssl"), "is not a whole number"),
        (ConditionRow("http.host", "eq", " "), "enter one value"),
        (ConditionRow("http.request.headers", "eq", "x"), "the name is missing"),
        (ConditionRow("ssl", "eq", "x"), "choose how to compare"),
        (ConditionRow("http.host", "in list", "a b"), "choose a list"),
        (ConditionRow("raw.http.request.uri", "eq", "x"), "not a field"),
    ],
)
def test_a_row_that_cannot_be_written_says_why(row: ConditionRow, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        expression_of([[row]])


def test_every_operator_fits_a_field_that_rows_offer() -> None:
    assert {word for field in ROW_FIELDS for word in operators_of(field)} == set(ROW_OPERATORS)
