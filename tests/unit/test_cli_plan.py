"""`greenroom plan`: its arithmetic, by laws that hold for every sale."""

import math

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from greenroom.cli import app
from greenroom.cli.plan import SalePlan, described

positive = st.floats(0.1, 1e4)
PLANS = st.builds(
    SalePlan,
    st.integers(1, 10**7),
    positive,
    positive,
    positive,
    positive,
    st.integers(1, 1440),
    st.integers(1, 100),
)


@given(PLANS)
def test_limits_keep_the_application_within_what_it_serves(found: SalePlan) -> None:
    if found.browsing >= found.visit_minutes:  # not rounded up to one visitor
        assert found.per_minute * found.visit_minutes <= found.browsing * (1 + 1e-9)
        assert found.active >= found.per_minute * found.stay_minutes - found.stay_minutes - 1
    assert found.longest_line <= found.visitors
    assert found.longest_line + found.per_minute * found.minutes >= found.visitors
    assert found.cores >= math.ceil(found.longest_line / 20 * 50e-6)
    assert all(len(line) < 100 for line in described(found))


def test_a_sale_of_a_hundred_thousand() -> None:
    ran = CliRunner().invoke(app, ["plan", "--visitors", "100000", "--pages-per-second", "100"])
    assert ran.exit_code == 0, ran.output
    told = dict(line.split(maxsplit=1) for line in ran.output.splitlines() if " " in line)
    assert told["total_active_users"] == "4000"
    assert told["new_users_per_minute"] == "400"
    assert "longest line          96000 visitors" in ran.output
    assert "line_table" in ran.output


def test_nothing_negative_is_taken() -> None:
    ran = CliRunner().invoke(app, ["plan", "--visitors", "0", "--pages-per-second", "1"])
    assert ran.exit_code == 2
