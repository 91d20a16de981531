"""Logs: one line per event, in the form that was asked for, and nothing in them that lets someone
take over a visit.
"""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from greenroom.runtime.logs import ERRORS_PER_MINUTE, SECRET_KEYS, ErrorLog, set_up_logs
from greenroom.settings.process import Log


@pytest.fixture(autouse=True)
def leave_logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def failing_with(ticket: str) -> ValueError:
    """An exception whose traceback passes by a secret."""
    try:
        headers = {"cookie": ticket}
        raise ValueError(f"broken with {len(headers)} header")
    except ValueError as error:
        return error


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(Log(format="json"))
    structlog.get_logger("a").info("said", number=3)
    logging.getLogger("uvicorn.error").error("of a library %s", "too")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["number"], first["level"], first["logger"]) == (
        "said",
        3,
        "info",
        "a",
    )
    assert (second["event"], second["level"]) == ("of a library too", "error")
    assert first["timestamp"].endswith("Z")


@pytest.mark.parametrize("format", ["json", "console"])
@pytest.mark.parametrize("key", sorted(SECRET_KEYS))
def test_secrets_are_not_written_regardless_of_who_passes_them(
    capsys: pytest.CaptureFixture[str], format: str, key: str
) -> None:
    set_up_logs(Log(format=format))
    structlog.get_logger("a").info("said", **{key: "hunter2"})
    said = capsys.readouterr().err
    assert "said" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_traceback_tells_lines_but_no_values(
    capsys: pytest.CaptureFixture[str], format: str
) -> None:
    set_up_logs(Log(format=format))
    ErrorLog(lambda: 0.0)(failing_with("hunter2"))
    said = capsys.readouterr().err
    assert "broken with 1 header" in said
    assert "failing_with" in said
    assert "hunter2" not in said


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(Log(level="error"))
    structlog.get_logger("a").warning("quiet")
    structlog.get_logger("a").error("loud")
    said = capsys.readouterr().err
    assert "quiet" not in said
    assert "loud" in said


def test_a_flood_of_exceptions_does_not_flood_the_disk(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(Log(format="json"))
    now = [0.0]
    errors = ErrorLog(lambda: now[0])
    for _ in range(1000):
        errors(failing_with("x"))
    now[0] = 61.0
    errors(failing_with("x"))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert len(lines) == ERRORS_PER_MINUTE + 2
    assert lines[-2]["count"] == 1000 - ERRORS_PER_MINUTE
