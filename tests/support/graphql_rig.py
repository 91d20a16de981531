"""GraphQL over the whole API in this process, on an analytics store with known minutes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from analytics_material import oracle, parts_of
from api_in_process import ApiInProcess, StandingClock
from starlette.applications import Starlette

from greenroom.analytics.graphql.datasets import room_answers
from greenroom.analytics.question import Question, Wanted
from greenroom.analytics.rollup import Part
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, RoomPlace
from greenroom.api.app import under_prefix
from greenroom.api.management import management_api
from greenroom.config_file.addresses import origin_problems
from greenroom.configuration.store import SqlStore, default_url
from greenroom.health.rules.memory import HealthBatch
from greenroom.model.change import Put
from greenroom.model.probe import CheckEvent, ProbeResult, Reason
from greenroom.model.room import Room
from greenroom.model.zone import Zone

ZONE, OTHER_ZONE = "example-zone", "other-zone"
ROOM, SECOND, ELSEWHERE = "example-waiting-room-id", "second-room", "room-elsewhere"
ROOMS = frozenset({ROOM, SECOND})
"""Those of the zone."""
FIRST = int(datetime.fromisoformat("2023-03-15T02:10:00+00:00").timestamp()) // 60
MINUTES = 200
"""From 02:10 to 05:30 of the day that the published query asks for."""


class GraphqlRig(ApiInProcess):
    """Asks queries; `parts` is everything that the store was told."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SqlStore(default_url(folder)), StandingClock((FIRST + MINUTES) * 60_000))
        places = {
            ROOM: RoomPlace(ZONE, "a"),
            SECOND: RoomPlace(ZONE, "b"),
            ELSEWHERE: RoomPlace(OTHER_ZONE, "c"),
        }
        self.keeper = Keeper(DuckEngine(folder / "analytics.duckdb"), places.__getitem__)
        self.parts: list[Part] = parts_of(
            random.Random(3), range(FIRST, FIRST + MINUTES), list(places), ["one", "two"]
        )
        self.keeper.write(self.parts, (FIRST + MINUTES) * 60)
        self.keeper.tend((FIRST + MINUTES) * 60)
        limits = {"total_active_users": 200, "new_users_per_minute": 200}
        rooms = [(ROOM, ZONE, "a"), (SECOND, ZONE, "b"), (ELSEWHERE, OTHER_ZONE, "c")]
        changes: list[Any] = [
            Put(Zone(id=ZONE, name="a.example")),
            Put(Zone(id=OTHER_ZONE, name="b.example")),
        ]
        hosts = {ZONE: "a.example", OTHER_ZONE: "b.example"}
        changes += [
            Put(Room(id=room, name=name, host=f"{name}.{hosts[zone]}", **limits), zone)
            for room, zone, name in rooms
        ]
        self.store.write(changes, expected=self.store.read().revision, author="test", now_ms=1)
        answers = room_answers(self.keeper, self.store, self.clock)
        api = management_api(
            self.store,
            self.store.sessions,
            self.clock,
            self.watched,
            origin_problems,
            self.watched,
            self.health,
            datasets=answers,
        )
        self.health._store.save(
            HealthBatch(events=[_event(number, self.clock.at_ms) for number in range(40)]),
            self.clock.at_ms,
        )
        self._client._transport.app = Starlette(routes=[under_prefix(api)])  # type: ignore[attr-defined]

    def close(self) -> None:
        super().close()
        self.keeper.close()

    def post(
        self,
        query: str,
        variables: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
        **more: Any,
    ) -> Any:
        """The response as HTTP has it."""
        document = {
            "query": query,
            **({"variables": dict(variables)} if variables is not None else {}),
            **more,
        }
        return self.ask("POST", "/graphql", document, token=token)

    def data(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """The data; fails when there is an error."""
        answer = self.post(query, variables)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["errors"] is None, body
        return body["data"]

    def groups(
        self,
        arguments: str,
        selection: str,
        variables: Mapping[str, Any] | None = None,
        declared: str = "",
    ) -> Any:
        """Rows of the grouped dataset of the zone."""
        query = f'query q{declared} {{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{ found: waitingRoomAnalyticsAdaptiveGroups({arguments}) {selection} }} }} }}'
        return self.data(query, variables)["viewer"]["zones"][0]["found"]

    def error(self, query: str, variables: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The first error of an answer that has no data."""
        answer = self.post(query, variables, **more)
        body = answer.json()
        assert answer.status_code == 200, body
        assert body["data"] is None
        assert body["errors"], body
        return body["errors"][0]


def _event(number: int, now_ms: int) -> CheckEvent:
    """One probe a minute, every fourth of which failed."""
    result = (
        ProbeResult(Reason.CODE, 503)
        if number % 4 == 0
        else ProbeResult(code=200, rtt_ms=float(number))
    )
    scope, region = ("overall", "Global") if number % 2 else ("agent", "WEU")
    return CheckEvent(
        now_ms - number * 60_000,
        "check",
        ZONE,
        "shop",
        "shop.example.com",
        number % 4 > 0,
        region,
        scope,
        result,
    )


@contextmanager
def graphql_in(folder: Path) -> Iterator[GraphqlRig]:
    """A rig in this folder."""
    rig = GraphqlRig(folder)
    try:
        yield rig
    finally:
        rig.close()


def seconds(text: str) -> int:
    """Unix time."""
    return int(datetime.fromisoformat(text).timestamp())


def truth(
    rig: GraphqlRig,
    start: str,
    end: str,
    *dimensions: str,
    rooms: frozenset[str] = ROOMS,
    wanted: Any = (),
) -> list[Any]:
    """What the parts that the store was told add up to."""
    question = Question(
        seconds(start), seconds(end), rooms, dimensions, tuple(Wanted(*found) for found in wanted)
    )
    return oracle(rig.parts, question)
