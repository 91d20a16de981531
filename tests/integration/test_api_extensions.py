"""Extensions of the API: kept apart from what is published, and what files may do that the API may
not.
"""

import asyncio
import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_in_process import ApiInProcess, api_in
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from greenroom.capacity.exported import Exported, FiguresRefused
from greenroom.configuration.routes.figures import FORMATS
from greenroom.model.zone import ACCOUNT_ID

LIMITS = {"new_users_per_minute": 200, "total_active_users": 200}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiInProcess]:
    with api_in(tmp_path) as api:
        yield api


def zone(api: ApiInProcess) -> str:
    return api.make("/zones", {"name": "example.com", "account": {"id": ACCOUNT_ID}})["id"]


@pytest.mark.parametrize(
    ("host", "pointers"),
    [
        ("*.example.com", []),
        ("*.shop.example.com", []),
        ("*", ["/host"]),
        ("*.other.test", ["/host"]),
    ],
)
def test_a_host_may_be_all_names_below_one_of_the_zone(
    api: ApiInProcess, host: str, pointers: list[str]
) -> None:
    answer = api.ask(
        "POST", f"/zones/{zone(api)}/waiting_rooms", {"name": "a", "host": host, **LIMITS}
    )
    assert answer.status_code == (400 if pointers else 200)
    assert [fault["source"]["pointer"] for fault in answer.json()["errors"]] == pointers


def test_a_room_may_follow_the_browsers_language(api: ApiInProcess) -> None:
    rooms = f"/zones/{zone(api)}/waiting_rooms"
    made = api.make(
        rooms,
        {
            "name": "a",
            "host": "example.com",
            **LIMITS,
            "greenroom": {"follow_accept_language": True},
        },
    )
    assert made["greenroom"]["follow_accept_language"] is True
    assert (
        api.ask("GET", f"{rooms}/{made['id']}").json()["result"]["greenroom"][
            "follow_accept_language"
        ]
        is True
    )


def test_a_room_may_list_the_origins_of_scripts(api: ApiInProcess) -> None:
    rooms = f"/zones/{zone(api)}/waiting_rooms"
    room = {"name": "a", "host": "example.com", **LIMITS}
    made = api.make(
        rooms, {**room, "greenroom": {"cors_origins": ["HTTPS://www.example.com:443/"]}}
    )
    assert made["greenroom"]["cors_origins"] == ["https://www.example.com"]
    refused = api.ask(
        "PATCH",
        f"{rooms}/{made['id']}",
        {"greenroom": {"cors_origins": ["https://a.example", "null"]}},
    )
    assert [fault["source"]["pointer"] for fault in refused.json()["errors"]] == [
        "/greenroom/cors_origins/1"
    ]


def test_the_route_tester_says_everything_wrong_with_a_question(api: ApiInProcess) -> None:
    told = api.ask(
        "GET", "/explain?url=https://shop.example/&header=Accept:%20text/html&client=192.0.2.1"
    ).json()["result"]
    assert (told["result"], told["word"], told["room"]) == ("origin", "bypassed", "a")
    wrong = api.ask("GET", "/explain?url=&header=nothing&method=")
    assert wrong.status_code == 400
    assert len(wrong.json()["errors"]) == 3
    assert api.ask("GET", "/explain?url=x", token="").status_code == 401
    assert (
        api.ask(
            "GET", "/explain?url=x", token=api.make_token("zones only", "read", zones=("z",))
        ).status_code
        == 403
    )


TEXT = (
    'http_request_duration_seconds_bucket{instance="a",le="0.5"} 7\n'
    'http_request_duration_seconds_bucket{instance="a",le="+Inf"} 9\n'
)


def test_figures_of_an_origin_are_pushed(api: ApiInProcess) -> None:
    zone_id = zone(api)
    made = api.make(
        f"/zones/{zone_id}/waiting_rooms",
        {"name": "a", "host": "example.com", **LIMITS, "greenroom": {"capacity_metrics": "push"}},
    )
    path = f"/zones/{zone_id}/waiting_rooms/{made['id']}/capacity/figures"

    def push(body: bytes, kind: str = "text/plain", token: str | None = None, **more: str) -> str:
        answer = api.send("POST", path, body, {"Content-Type": kind, **more}, token=token)
        if answer.status_code == 200:
            return ""
        return f"{answer.status_code} {answer.json()['errors'][0]['message']}"

    assert push(TEXT.encode()) == ""
    (found,) = api.watched.figures["a"].items()
    assert (found[0], found[1].documents.total) == ("a", 9)
    assert push(gzip.compress(TEXT.encode()), **{"Content-Encoding": "gzip"}) == ""
    protobuf = exported_by_the_sdk()
    assert push(protobuf, "application/x-protobuf") == ""
    assert api.watched.figures["a"]["pod-1"].documents.total == 2
    assert push(b"x", "text/html").startswith("400 Content-Type: must be one of application/json,")
    assert push(b"{", "application/json").startswith("400 the body is no OTLP metrics request")
    assert push(b"\xff", "application/x-protobuf").startswith("400 the body is no OTLP metrics")
    assert push(TEXT.encode(), **{"Content-Encoding": "br"}).startswith("400 Content-Encoding: ")
    bomb = gzip.compress(b"#" * (2 << 20))
    assert "larger than 1048576" in push(bomb, **{"Content-Encoding": "gzip"})
    assert push(b"#" * (2 << 20)).startswith("413 ")
    assert push(TEXT.encode(), token=api.make_token("reads", "read")).startswith("403 ")
    other = api.make_token("elsewhere", "edit", zones=("z",))
    assert push(TEXT.encode(), token=other).startswith("403 ")
    assert push(TEXT.encode(), token="").startswith("401 ")


def test_large_figures_are_read_two_at_once(
    api: ApiInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone_id = zone(api)
    made = api.make(
        f"/zones/{zone_id}/waiting_rooms", {"name": "a", "host": "example.com", **LIMITS}
    )
    path = f"/zones/{zone_id}/waiting_rooms/{made['id']}/capacity/figures"
    at_once = [0, 0]  # now, most
    guard, third = threading.Lock(), threading.Event()

    def read(_body: bytes, _metric: str) -> dict[str, Exported]:
        with guard:
            at_once[0] += 1
            at_once[1] = max(at_once)
        if at_once[0] > 2:
            third.set()
        third.wait(0.1)  # a third one would come meanwhile
        with guard:
            at_once[0] -= 1
        raise FiguresRefused("read")

    async def everyone() -> list[int]:
        headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "text/plain"}
        asked = [api._client.request("POST", path, content=b"x", headers=headers) for _ in range(4)]
        return [answer.status_code for answer in await asyncio.gather(*asked)]

    monkeypatch.setitem(FORMATS, "text/plain", read)
    assert api._runner.run(everyone()) == [400] * 4
    assert at_once == [0, 2]


def exported_by_the_sdk() -> bytes:
    """What an application with OpenTelemetry sends."""
    reader = InMemoryMetricReader()
    about = Resource.create({"service.instance.id": "pod-1"})
    meter = MeterProvider([reader], resource=about).get_meter("shop")
    histogram = meter.create_histogram("http.server.request.duration", "s")
    for seconds, status in ((0.2, 200), (3.0, 404), (0.1, 503)):
        histogram.record(seconds, {"http.response.status_code": status})
    data = reader.get_metrics_data()
    assert data is not None
    return encode_metrics(data).SerializeToString()


def test_an_autoscaler_reads_the_capacity_and_somebody_takes_it_over(api: ApiInProcess) -> None:
    rooms = f"/zones/{zone(api)}/waiting_rooms"
    follows = {"capacity": "follow", "objective_ms": 800, "floor": 20}
    made = api.make(rooms, {"name": "a", "host": "example.com", **LIMITS, "greenroom": follows})
    assert {name: made["greenroom"][name] for name in follows} == follows
    room = f"{rooms}/{made['id']}"
    found = api.ask("GET", f"{room}/capacity").json()["result"]
    assert (found["mode"], found["desired_sessions"], found["capacity"]) == ("follow", 0, 200)
    wrong = api.ask("PUT", f"{room}/capacity", {"instances": -1})
    assert wrong.json()["errors"][0]["message"] == "instances: must be a number from 0 to 1000000"
    assert api.ask("PUT", f"{room}/capacity", {"instances": 4}).status_code == 200
    begin = f"{room}/operations/take_over"
    assert api.ask("PUT", begin, {"count": 201}).status_code == 400
    (taken,) = api.ask("PUT", begin, {"count": 120}).json()["result"]
    assert (taken["kind"], taken["count"]) == ("take_over", 120)
    assert api.ask("GET", f"{room}/capacity").json()["result"]["capacity"] == 120
    assert api.ask("DELETE", begin).json()["result"] == []
    assert api.ask("PUT", f"{room}/operations/capacity", {}).status_code == 404
    api.ask("PATCH", room, {"greenroom": {"capacity": "fixed"}})
    refused = api.ask("PUT", begin, {"count": 120}).json()["errors"][0]["message"]
    assert "only a room with capacity follow can be taken over" in refused
