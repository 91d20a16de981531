"""Spans as bytes, read by the official protobuf messages; the environment's variables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from greenroom.runtime.span_bytes import CLIENT, SERVER, request, span
from greenroom.runtime.span_sender import pairs, resource

IDS = st.binary(min_size=8, max_size=8)
TIMES = st.integers(0, 2**63)
VALUES = st.one_of(st.text(max_size=300), st.integers(0, 2**40))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(
    st.binary(min_size=16, max_size=16), IDS, st.one_of(st.just(b""), IDS), TEXTS, TIMES, TIMES,
    st.dictionaries(TEXTS, VALUES, max_size=5), st.booleans(), st.booleans(),
)  # fmt: skip
def test_every_field_is_read_as_it_was_written(
    trace_id, span_id, parent_id, name, start_ns, end_ns, attributes, failed, remote
) -> None:
    one = span(
        trace_id, span_id, parent_id, name, SERVER, (start_ns, end_ns), attributes, b"a=b",
        failed=failed, parent_is_remote=remote,
    )  # fmt: skip
    other = span(trace_id, span_id, b"", "origin", CLIENT, (1, 2), {})
    sent = request({"service.name": "x"}, ("greenroom", "1.0"), [one, other])
    (group,) = ExportTraceServiceRequest.FromString(sent).resource_spans
    (scope,) = group.scope_spans
    told = {row.key: row.value.string_value for row in group.resource.attributes}
    assert (told, scope.scope.name, scope.scope.version) == (
        {"service.name": "x"},
        "greenroom",
        "1.0",
    )
    read, last = scope.spans
    assert (read.trace_id, read.span_id, read.parent_span_id) == (trace_id, span_id, parent_id)
    assert (read.name, read.kind, read.trace_state) == (name, 2, "a=b")
    assert (read.start_time_unix_nano, read.end_time_unix_nano) == (start_ns, end_ns)
    found = {
        row.key: getattr(row.value, row.value.WhichOneof("value") or "") for row in read.attributes
    }
    assert found == {
        key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for key, value in attributes.items()
    }
    assert read.status.code == (2 if failed else 0)
    assert read.flags == (0x301 if remote else 0x101)
    assert (last.name, last.kind, last.parent_span_id) == ("origin", 3, b"")


def test_variables_of_opentelemetry_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=a%2Cb, service.name=no")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    assert resource("1.0") == {
        "service.name": "shop",
        "service.version": "1.0",
        "deployment.environment": "a,b",
    }
    assert pairs("Authorization=Bearer%20x,broken,") == {"Authorization": "Bearer x"}
