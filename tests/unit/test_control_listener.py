"""The control listener answers from one picture of the process: health, readiness, metrics, status."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar, Timestamp

from greenroom.api.app import control_app
from greenroom.api.metrics import (
    METRICS,
    Exposition,
    gateway_rows,
)
from greenroom.capacity import Histogram
from greenroom.config_file.addresses import exposure_notes
from greenroom.configuration.state import (
    ConfigState,
    DocumentState,
    ProcessState,
    RoomState,
    StoreState,
    TracedAnswer,
)
from greenroom.configuration.status import status
from greenroom.decision.room_view import Figures
from greenroom.errors import Problem
from greenroom.gateway.counts import GAUGES, MEANINGS, Counts
from greenroom.model.room import Room
from greenroom.model.visit import Estimate
from greenroom.settings.process import Address

ROOM = Room(
    id="i", name="shop", host="shop.example.com", total_active_users=5, new_users_per_minute=7
)
FIGURES = Figures(5, 12, 3, 2, Estimate(10.0, 20.04, 30.0), 4096)
SERVING = ProcessState(
    version="1.2.3",
    phase="serving",
    now_ms=61_500,
    started_ms=1_000,
    listen="127.0.0.1:8080",
    data="/data",
    config=ConfigState("greenroom.toml", 2_000, 3, 1),
    rooms=(RoomState(ROOM, FIGURES, {"held": 9, "active": 4, "admitted": 40}),),
    gateway=(("requests", 13), ("connections_open", 2)),
    clock_ahead_ms=-1_500,
)
ROWS = (
    *METRICS,
    *gateway_rows(
        [("requests", "requests read"), ("connections_open", "open now")],
        frozenset(["connections_open"]),
    ),
)


class Picture:
    """Shows any state a test wants."""

    def __init__(self, state: ProcessState) -> None:
        self.shown = state

    def count_instances(self, room_id: str, instances: int) -> None: ...

    async def push_figures(self, room: Any, found: Any) -> None: ...

    def state(self) -> ProcessState:
        return self.shown


def ask(state: ProcessState, path: str) -> tuple[int, str]:
    """One request to the application, without a socket."""
    picture = Picture(state)
    sent: list[dict] = []

    async def receive() -> dict:
        return {"type": "http.request", "body": b""}

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(control_app(picture, Exposition(picture, ROWS))(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()


def changed(**fields: object) -> ProcessState:
    return msgspec.structs.replace(SERVING, **fields)


def values(state: ProcessState) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(ask(state, "/metrics")[1])
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("phase", "code"), [("starting", 503), ("serving", 200), ("draining", 503)]
)
def test_it_is_ready_only_while_serving_and_always_alive(phase: str, code: int) -> None:
    assert ask(changed(phase=phase), "/readyz") == (code, f"{phase}\n")
    assert ask(changed(phase=phase), "/healthz")[0] == 200


def test_a_refused_configuration_does_not_make_it_unready() -> None:
    assert (
        ask(changed(config=ConfigState(problems=(Problem("rooms", "is gone"),))), "/readyz")[0]
        == 200
    )


def test_it_says_what_there_is_to_ask() -> None:
    assert ask(SERVING, "/")[1].split()[-4:] == ["/healthz", "/readyz", "/metrics", "/status"]
    assert ask(SERVING, "/shop")[0] == 404


def test_the_metrics_are_what_prometheus_reads() -> None:
    found = values(SERVING)
    shop = (("room", "shop"),)
    assert found["greenroom_build_info", (("version", "1.2.3"),)] == 1
    assert found["greenroom_compiled", ()] == 0
    assert values(changed(compiled=True))["greenroom_compiled", ()] == 1
    assert found["greenroom_ready", ()] == 1
    assert found["greenroom_config_valid", ()] == 1
    assert found["greenroom_config_reloads_total", ()] == 3
    assert found["greenroom_config_reload_failures_total", ()] == 1
    assert found["greenroom_room_active_users", shop] == 5
    assert found["greenroom_room_waiting_users", shop] == 12
    assert found["greenroom_room_admitted_total", shop] == 40
    assert found["greenroom_room_estimated_wait_seconds", shop] == 20.04
    assert found["greenroom_room_requests_total", (("result", "held"), ("room", "shop"))] == 9
    assert found["greenroom_gateway_requests_total", ()] == 13
    assert found["greenroom_gateway_connections_open", ()] == 2


def test_documents_are_a_histogram_of_seconds_and_absent_where_none_was_forwarded() -> None:
    assert not [name for name, _ in values(SERVING) if "document" in name]
    documents = DocumentState(Histogram.of([4, 180, 90_000]), 2)
    found = values(changed(rooms=(RoomState(ROOM, FIGURES, {}, documents=documents),)))
    name, shop = "greenroom_room_document_seconds", ("room", "shop")
    told = [
        found[f"{name}_bucket", (("le", bound), shop)]
        for bound in ("0.005", "0.15", "0.2", "60.0", "+Inf")
    ]
    assert told == [1, 1, 2, 2, 3]
    assert found[f"{name}_count", (shop,)] == 3
    assert found[f"{name}_sum", (shop,)] == pytest.approx(90.184)
    assert found["greenroom_room_documents_failed_total", (shop,)] == 2


def test_the_newest_traced_answer_of_a_bucket_is_an_exemplar_where_openmetrics_is_asked_for() -> (
    None
):
    traced = {1: TracedAnswer("0a" * 16, "0b" * 8, 0.009, 1_700_000_000.0)}
    documents = DocumentState(Histogram.of([4, 9, 90_000]), 0, traced)
    state = changed(rooms=(RoomState(ROOM, FIGURES, {}, documents=documents),))
    exposition = Exposition(Picture(state), ROWS)
    text, media_type = exposition.text(
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    )
    assert media_type.startswith("application/openmetrics-text")
    found = {
        sample.labels["le"]: sample.exemplar
        for family in openmetrics_families(text.decode())
        for sample in family.samples
        if sample.name == "greenroom_room_document_seconds_bucket" and sample.exemplar
    }
    labels = {"trace_id": "0a" * 16, "span_id": "0b" * 8}
    assert found == {"0.01": Exemplar(labels, 0.009, Timestamp(1_700_000_000, 0))}
    plain, media_type = exposition.text("text/plain")
    assert media_type.startswith("text/plain")
    assert b"trace_id" not in plain


def test_an_unknown_wait_is_absent_and_not_zero() -> None:
    room = RoomState(ROOM, msgspec.structs.replace(FIGURES, estimate=None), {})
    found = values(changed(rooms=(room,)))
    assert [name for name, _ in found if name == "greenroom_room_estimated_wait_seconds"] == []
    assert status(changed(rooms=(room,)))["rooms"][0]["estimated_wait_seconds"] is None


def test_trouble_shows_in_the_metrics() -> None:
    room = RoomState(ROOM, msgspec.structs.replace(FIGURES, storage_failed=True), {})
    config = ConfigState(problems=(Problem("rooms", "is gone", 3),), pending=("listen",))
    found = values(changed(phase="draining", rooms=(room,), config=config))
    assert found["greenroom_ready", ()] == 0
    assert found["greenroom_config_valid", ()] == 0
    assert found["greenroom_config_pending_changes", ()] == 1
    assert found["greenroom_room_storage_failed", (("room", "shop"),)] == 1


def test_every_row_has_a_name_and_a_meaning_of_its_own() -> None:
    counted = {name for name in dir(Counts()) if not name.startswith("_")} - {
        "described",
        "documents",
    }
    assert counted == set(MEANINGS) > GAUGES
    described = list(Counts().described())
    gauges = frozenset(name for name, _, gauge, _ in described if gauge)
    rows = (
        *METRICS,
        *gateway_rows([(name, meaning) for name, meaning, _, _ in described], gauges),
    )
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.help and row.name.startswith("greenroom_") for row in rows)


def test_the_status_tells_the_same_as_json() -> None:
    told = json.loads(ask(SERVING, "/status")[1])
    assert (told["phase"], told["uptime_seconds"], told["config"]["valid"]) == ("serving", 60, True)
    assert told["clock_ahead_seconds"] == -1.5
    (room,) = told["rooms"]
    assert room["active_users"] == 5
    assert room["total_active_users"] == 5
    assert room["estimated_wait_seconds"] == [10.0, 20.0, 30.0]
    assert room["routes"] == ["shop.example.com/"]
    assert told["gateway"] == {"requests": 13, "connections_open": 2}


def test_a_control_listener_open_to_the_network_is_pointed_out() -> None:
    assert (
        exposure_notes(Address("127.0.0.1", 1), private=False)
        == exposure_notes(Address("::1", 1), private=False)
        == []
    )
    for private, notes in ((True, 1), (False, 2)):
        found = exposure_notes(Address("0.0.0.0", 1), private=private)
        assert (len(found), "0.0.0.0:1" in found[0]) == (notes, True)
    assert "[control_tls]" in found[1]


def test_rooms_of_one_name_in_two_zones_are_told_apart() -> None:
    twin = RoomState(
        Room(
            id="j",
            name="shop",
            host="other.org",
            path="/x",
            total_active_users=5,
            new_users_per_minute=7,
        ),
        FIGURES,
        {},
    )
    found = values(changed(rooms=(*SERVING.rooms, twin)))
    assert ("greenroom_room_active_users", (("room", "shop (shop.example.com/)"),)) in found
    assert ("greenroom_room_active_users", (("room", "shop (other.org/x)"),)) in found


def test_the_store_is_told_with_what_is_wrong_with_its_newest_revision() -> None:
    store = (
        StoreState("sqlite:///x", True, 4, 4, 9_000)
        .refused(5, (Problem("room a", "clashes"),))
        .lost()
    )
    found = values(changed(store=store))
    assert found["greenroom_config_store_valid", ()] == 0
    assert found["greenroom_config_store_reachable", ()] == 0
    assert found["greenroom_config_store_revision", ()] == 4
    assert found["greenroom_config_store_refusals_total", ()] == 1
    told = status(changed(store=store))["config_store"]
    assert told == {
        "store": "sqlite:///x",
        "reachable": False,
        "revision": 4,
        "valid": False,
        "problems": [{"key": "room a", "reason": "clashes"}],
        "from_copy": False,
    }


def test_a_refusal_counts_once_however_often_it_is_tried_and_is_forgotten_with_the_next_good_revision() -> (
    None
):
    why = (Problem("room a", "clashes"),)
    store = StoreState(revision=4, tried=4).refused(5, why).refused(5, why)
    assert (store.refusals, store.revision, store.problems) == (1, 4, why)
    assert store.refused(6, why).refusals == 2
    good = store.of_revision(6, 1_000)
    assert (good.refusals, good.revision, good.taken, good.problems) == (1, 6, 1, ())
