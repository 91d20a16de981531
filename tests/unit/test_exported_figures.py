"""Histograms that other programs export: the same figures from OTLP, Prometheus text and an answer of
Prometheus, and an error for each kind of bad input.
"""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.capacity.exported import (
    INSTANCES_MAX,
    Exported,
    FiguresRefused,
    of_otlp,
    of_prometheus_answer,
    of_prometheus_text,
)
from greenroom.capacity.histogram import Histogram

BOUNDS_S = (0.1, 0.5, 1.0, 2.5)
COUNTS = st.lists(st.integers(0, 1_000), min_size=5, max_size=5)


def cumulative(counts: list[int]) -> list[tuple[str, int]]:
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    return [(bound, sum(counts[: place + 1])) for place, bound in enumerate(bounds)]


def otlp(counts: list[int], status: int, **more: Any) -> dict[str, Any]:
    point = {
        "attributes": [
            {"key": "http.response.status_code", "value": {"intValue": str(status)}},
            {"key": "http.route", "value": {"stringValue": "/"}},
        ],
        "bucketCounts": [str(count) for count in counts],
        "explicitBounds": list(BOUNDS_S),
        "sum": 7.0,
        "count": str(sum(counts)),
    }
    histogram = {"aggregationTemporality": 2, "dataPoints": [point]}
    metric = {"name": "http.server.request.duration", "unit": "s", "histogram": histogram, **more}
    instance = {"key": "service.instance.id", "value": {"stringValue": "pod-1"}}
    resource = {"attributes": [instance]}
    return {"resource": resource, "scopeMetrics": [{"metrics": [metric]}]}


def as_otlp(well: list[int], failed: list[int]) -> dict[str, Exported]:
    request = {"resourceMetrics": [otlp(well, 200), otlp(failed, 503)]}
    return of_otlp(json.dumps(request).encode())


def as_text(well: list[int], failed: list[int]) -> dict[str, Exported]:
    name, lines = "http_server_request_duration_seconds", ["# TYPE x histogram", "", "up 1"]
    for status, counts in (("200", well), ("503", failed)):
        labels = f'instance="pod-1",http_route="a \\"b\\"",http_response_status_code="{status}"'
        lines += [f'{name}_bucket{{{labels},le="{le}"}} {n}' for le, n in cumulative(counts)]
        lines += [f"{name}_sum{{{labels}}} 7.0", f"{name}_count{{{labels}}} {sum(counts)} 1712"]
    return of_prometheus_text("\n".join(lines).encode())


def matrix(well: list[int], failed: list[int]) -> bytes:
    series = [
        {
            "metric": {
                "__name__": "x_seconds_bucket",
                "instance": "pod-1",
                "code": status,
                "le": le,
            },
            "values": [[1_700_000_000.0, "0"], [1_700_000_015.5, str(count)]],
        }
        for status, counts in (("200", well), ("500", failed))
        for le, count in cumulative(counts)
    ]
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": series}}
    ).encode()


@given(COUNTS, COUNTS)
def test_every_format_says_the_same_and_never_that_the_origin_is_faster(
    well: list[int], failed: list[int]
) -> None:
    """A document in a bucket is at most as slow as its bound."""
    slowest = [
        ms
        for bound, count in zip((100, 500, 1_000, 2_500, 90_000), well, strict=True)
        for ms in [bound] * count
    ]
    expected = Histogram.of(slowest).counts
    for read in (as_otlp, as_text):
        (found,) = read(well, failed).items()
        assert found == ("pod-1", Exported(Histogram(expected, 7_000.0), sum(failed)))
    (asked,) = of_prometheus_answer(matrix(well, failed)).items()
    assert (asked[0], asked[1].documents.counts) == ("pod-1", expected)
    assert (asked[1].failed, asked[1].at_ms) == (sum(failed), 1_700_000_015_500)


WELL = [1, 2, 3, 4, 5]


def changed(**more: Any) -> bytes:
    return json.dumps({"resourceMetrics": [otlp(WELL, 200, **more)]}).encode()


def points(**more: Any) -> bytes:
    point = {"bucketCounts": [1, 2], "explicitBounds": [1.0], **more}
    return changed(histogram={"aggregationTemporality": 2, "dataPoints": [point]})


BUCKET = 'http_request_duration_seconds_bucket{le="%s"} %s\n'


@pytest.mark.parametrize(
    ("read", "body", "words"),
    [
        (of_otlp, b"{", "no OTLP metrics request"),
        (of_otlp, b"\xff", "no OTLP metrics request"),
        (of_otlp, b"[" * 5_000, "no OTLP metrics request"),
        (of_otlp, b"{}", "there is no histogram http.server.request.duration"),
        (of_otlp, changed(name="other"), "but other"),
        (of_otlp, changed(unit="min"), "unit must be s or ms, not 'min'"),
        (of_otlp, changed(histogram=None), "must be a histogram with explicit bounds"),
        (
            of_otlp,
            changed(histogram={"aggregationTemporality": 1}),
            "aggregationTemporality must be cumulative",
        ),
        (of_otlp, points(explicitBounds=[]), "1 to 200 bounds"),
        (of_otlp, points(bucketCounts=[1]), "one more bucket than bounds"),
        (of_otlp, points(bucketCounts=[1, -1]), "must be whole numbers, not '-1'"),
        (of_otlp, points(bucketCounts=["a", 1]), "must be whole numbers, not 'a'"),
        (
            of_otlp,
            points(bucketCounts=[1, 2, 3], explicitBounds=[1, 1]),
            "bounds must be at least 0 and ascend",
        ),
        (of_otlp, points(explicitBounds=[-1.0]), "bounds must be at least 0 and ascend"),
        (of_prometheus_text, b"\xff", "not UTF-8"),
        (of_prometheus_text, b"", "but no metric"),
        (of_prometheus_text, BUCKET.encode() % (b"1", b"x"), "'x' is not a number"),
        (of_prometheus_text, b"http_request_duration_seconds_bucket{le=1} 2", "line 1 is no"),
        (of_prometheus_text, BUCKET.encode() % (b"1", b"2"), "the last one +Inf"),
        (of_prometheus_text, BUCKET.encode() % (b"+Inf", b"NaN"), "must be numbers"),
        (of_prometheus_text, BUCKET.encode() % (b"+Inf", b"2"), "1 to 200 bounds"),
        (
            of_prometheus_text,
            (BUCKET % ("1", "3") + BUCKET % ("+Inf", "2")).encode(),
            "must be 0 to 9007199254740992 in all",
        ),
        (
            of_prometheus_text,
            (BUCKET % ("1", "1e300") + BUCKET % ("+Inf", "1e300")).encode(),
            "must be 0 to 9007199254740992 in all",
        ),
        (
            of_prometheus_text,
            (
                BUCKET % ("NaN", "3")
                + BUCKET % ("+Inf", "3")
                + "http_request_duration_seconds_sum 1\n"
            ).encode(),
            "bounds must be at least 0 and ascend",
        ),
        (of_otlp, points(bucketCounts=["9" * 20, 1]), "must be 0 to 9007199254740992 in all"),
        (of_otlp, points(bucketCounts=[10**400, 1]), "must be whole numbers, not '1000"),
        (of_otlp, points(bucketCounts=[1]).replace(b"[1]", b"[%s]" % (b"9" * 9_000)), "no OTLP"),
        (of_prometheus_answer, b"<html>", "no usable answer"),
        (of_prometheus_answer, b'{"status":"error","error":"parse error"}', "parse error"),
        (
            of_prometheus_answer,
            b'{"status":"success","data":{"resultType":"vector","result":[]}}',
            "must be a selector of buckets",
        ),
        (
            of_prometheus_answer,
            b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
            "no series of the query",
        ),
        (
            of_prometheus_answer,
            b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"}}]}}',
            "must select series that end in _bucket, not 'up'",
        ),
    ],
)
def test_bad_input_is_named(read: Any, body: bytes, words: str) -> None:
    with pytest.raises(FiguresRefused) as refused:
        read(body)
    assert words in str(refused.value)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_body_raises_anything_else(body: bytes) -> None:
    for read in (of_otlp, of_prometheus_text, of_prometheus_answer):
        try:
            read(body)
        except FiguresRefused:
            continue
        pytest.fail(f"{read} takes {body!r}")


def test_only_a_newline_ends_a_line() -> None:
    bucket = 'http_request_duration_seconds_bucket{instance="a\u2028b\x85c",le="%s"} 1\n'
    assert set(of_prometheus_text((bucket % "1" + bucket % "+Inf").encode())) == {"a\u2028b\x85c"}


def test_there_is_a_limit_of_instances() -> None:
    one = 'http_request_duration_seconds_bucket{instance="%d",le="%s"} 1\n'
    text = "".join(one % (n, le) for n in range(INSTANCES_MAX + 1) for le in ("1", "+Inf"))
    with pytest.raises(FiguresRefused, match="at most 200 instances, not 201"):
        of_prometheus_text(text.encode())


def test_a_line_of_spaces_is_read_in_time() -> None:
    line = 'http_request_duration_seconds_bucket{a="1"' + " " * 900_000 + "x"
    with pytest.raises(FiguresRefused, match="line 1 is no sample"):
        of_prometheus_text(line.encode())


@pytest.mark.parametrize("written", ["1700000015500", "1700000015", "1700000015.5", ""])
def test_the_time_of_a_point_or_sample_is_kept(written: str) -> None:
    lines = [f'http_request_duration_seconds_bucket{{le="{le}"}} 5 {written}' for le in (1, "+Inf")]
    (text,) = of_prometheus_text("\n".join(lines).encode()).values()
    seconds = 1_700_000_015_000 if written else 0
    assert text.at_ms == (1_700_000_015_500 if written.endswith("500") else seconds)
    request = otlp([1, 2, 3, 4, 5], 200)
    point = request["scopeMetrics"][0]["metrics"][0]["histogram"]["dataPoints"][0]
    point["timeUnixNano"] = "1700000015500000000"
    (pushed,) = of_otlp(json.dumps({"resourceMetrics": [request]}).encode()).values()
    assert pushed.at_ms == 1_700_000_015_500
    point["timeUnixNano"] = -1
    with pytest.raises(FiguresRefused, match="timeUnixNano must be whole numbers, not '-1'"):
        of_otlp(json.dumps({"resourceMetrics": [request]}).encode())


def test_attributes_that_nobody_reads_are_not_kept_for_each_point() -> None:
    """2,000 series of a resource with 50,000 attributes would take gigabytes."""
    resource = otlp([1, 0, 0, 0, 0], 200)
    resource["resource"] = {"attributes": [{"key": f"a{number}"} for number in range(10_000)]}
    (metric,) = resource["scopeMetrics"][0]["metrics"]
    metric["histogram"]["dataPoints"] *= 500
    body = json.dumps({"resourceMetrics": [resource]}).encode()
    tracemalloc.start()
    try:
        assert of_otlp(body)[""].documents.total == 500
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()
