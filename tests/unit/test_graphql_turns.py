"""Queries of the API and of the dashboard's explorer share one limit of what runs at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from greenroom.analytics.graphql.endpoint import AT_ONCE, GraphqlEndpoint
from greenroom.api.management import ALL_DATASETS
from greenroom.model.account import Token
from greenroom.model.configuration import Configuration
from greenroom.runtime.clock import MonotonicClock
from greenroom.web.authenticator import Caller

QUERY = b'{"query": "{ __typename }"}'


class SlowStore:
    """Counts who reads at once; nobody is answered before `go`."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.full, self.go = threading.Event(), threading.Event()
        self._guard = threading.Lock()

    def read(self) -> Configuration:
        with self._guard:
            self.running += 1
            self.most = max(self.most, self.running)
            if self.running == AT_ONCE:
                self.full.set()
        assert self.go.wait(30)
        with self._guard:
            self.running -= 1
        return Configuration()


def test_no_more_than_two_queries_run_at_once_whoever_asks() -> None:
    store: Any = SlowStore()
    made = [
        GraphqlEndpoint(store, MonotonicClock(), ALL_DATASETS, {}) for _ in ("api", "dashboard")
    ]
    caller = Caller(Token(id="t", name="t", scopes=("analytics",), secret_sha256="0" * 64))
    with ThreadPoolExecutor(8) as threads:
        of_people = [threads.submit(made[1].ask, caller, QUERY) for _ in range(AT_ONCE)]
        assert store.full.wait(30)
        of_api = [threads.submit(made[0]._answer, caller, "{ __typename }", {}, None)]
        store.go.set()
        assert [one.result().status_code for one in of_people + of_api] == [200] * (AT_ONCE + 1)
    assert store.most == AT_ONCE
