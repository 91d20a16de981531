"""A dashboard and a provider that signs people in to it, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from dashboard_rig import DashboardRig, dashboard_in
from oidc_rig import Provider
from oidc_sign_in import provider_of


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardRig]:
    """With zones and rooms."""
    with dashboard_in(tmp_path_factory.mktemp("oidc")) as found:
        found.fill()
        yield found


@pytest.fixture
def provider(rig: DashboardRig) -> Iterator[Provider]:
    with provider_of(rig) as found:
        yield found
