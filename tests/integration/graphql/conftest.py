"""GraphQL on the minutes of `graphql_rig`, one for each file of tests."""

from collections.abc import Iterator

import pytest
from graphql_rig import GraphqlRig, graphql_in

from greenroom.analytics.graphql.endpoint import CALLS_MS


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphqlRig]:
    with graphql_in(tmp_path_factory.mktemp("graphql")) as found:
        yield found


@pytest.fixture(autouse=True)
def later(rig: GraphqlRig) -> None:
    """Every test has its own budget of calls."""
    rig.clock.at_ms += CALLS_MS
