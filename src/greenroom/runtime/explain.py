import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from greenroom.config_file.load import load_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.served import served, served_hosts
from greenroom.configuration.explain_request import ExplainRequest
from greenroom.configuration.state import Observed, RoomState
from greenroom.configuration.store import SqlStore, default_url, store_exists
from greenroom.decision.explain import (
    Explanation,
    RoomDefinition,
    Seats,
    described_arrival,
    explain,
)
from greenroom.lookups.confirmed_names import ConfirmedNames, Resolver
from greenroom.model.room import Room
from greenroom.request.canonical import Refusal
from greenroom.rules import Lookups, compile_lists
from greenroom.runtime.assemble import forwarded_policy, lookups
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.room_compiler import rules_of

LOOK_S = 0.01


def explained(
    config: ProcessConfig,
    asked: ExplainRequest,
    lookups: Lookups,
    now_ms: int,
    ledgers: Mapping[str, Seats],
) -> Explanation:
    """Raises InvalidConfig when the lists cannot be used (a checked configuration's can)."""
    arrival = described_arrival(
        asked.url, asked.method, asked.headers, asked.client, forwarded_policy(config)
    )
    if isinstance(arrival, Refusal):
        reason = f"Status {arrival.status}, before room lookup: {arrival.reason}."
        return Explanation(asked.method, asked.url, asked.client, "refused", "malformed", reason)
    plans = [_definition(config, room) for room in config.rooms]
    return explain(
        arrival, plans, compile_lists(config.lists), lookups, now_ms, ledgers, served_hosts(config)
    )


def _definition(config: ProcessConfig, room: Room) -> RoomDefinition:
    https = config.settings_of(room).always_use_https
    return RoomDefinition(room, config.documents.events_of(room.id), rules_of(config, room), https)


def seats(state: RoomState) -> Seats:
    figures, now = state.figures, state.now
    return Seats(
        figures.active,
        figures.waiting,
        state.origin,
        held_for_origin=bool(now and now.origin_down),
        held_for_slow_origin=bool(now and now.origin_slow),
        capacity=now.capacity if now else None,
        newcomers_confirmed=figures.confirms,
        storage_failed=figures.storage_failed,
    )


class RunningExplain:
    def __init__(
        self,
        config: Callable[[], ProcessConfig],
        lookups: Callable[[], Lookups],
        now_ms: Callable[[], int],
        observed: Observed,
    ) -> None:
        self._config, self._lookups = config, lookups
        self._now_ms, self._observed = now_ms, observed

    def explain(self, asked: ExplainRequest) -> Explanation:
        """Inside the event loop."""
        now_ms = self._now_ms()
        found = {room.room.id: seats(room) for room in self._observed.state().rooms}
        return explained(self._config(), asked, self._lookups(), now_ms, found)


def explain_on_file(path: Path, asked: ExplainRequest) -> Explanation:
    """Raises InvalidConfig or StorageFailed."""
    config = load_config(path)
    url = config.store or default_url(config.data)
    if store_exists(url):
        store = SqlStore(url)
        try:
            config = served(config, store.read())
        finally:
            store.close()
    return asyncio.run(_with_names(config, asked))


async def _with_names(config: ProcessConfig, asked: ExplainRequest) -> Explanation:
    # Here there is time to wait for the name of a crawler's address.
    clock = MonotonicClock()
    names = ConfirmedNames(Resolver(), clock.now_ms)
    known = lookups(config, names)
    first = explained(config, asked, known, clock.now_ms(), {})
    if not names.busy:
        return first
    running = asyncio.create_task(names.run())
    while names.busy:
        await asyncio.sleep(LOOK_S)
    running.cancel()
    return explained(config, asked, known, clock.now_ms(), {})
