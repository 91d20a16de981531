"""A real greenroom records what its visitors do, and published GraphQL clients read it: Python's
gql, and the official SDK.
"""

import csv
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import gql
from api_rig import Api, create_token
from gql.transport.httpx import HTTPXTransport
from tests.conftest import eventually
from warm_start import finished

from greenroom.analytics.rollup import SLOT_MS

QUERY = """query Rooms($since: Time!, $n: uint64!) { viewer { zones { zoneTag
  total: waitingRoomAnalyticsAdaptiveGroups(limit: $n, filter: {datetime_geq: $since}) {
    count
    max { totalActiveUsers totalQueuedUsers totalActiveUsersConfig newUsersPerMinuteConfig sessionDurationConfig }
    sum { newUsersPerMinute requestsHeld requestsPassed usersLeft usersWaited sessionsEnded minutesIncomplete }
    percentile { totalTimeWaitedP50 timeOnOriginP50 }
    avgWeighted { totalTimeWaitedP50 }
  } } } }"""


def since() -> str:
    return (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def total(api: Api) -> Any:
    """The one row of the one zone; the store is opened in a thread, so the first question may come
    too early.
    """

    def body() -> Any:
        return api.ask(
            "POST", "/graphql", {"query": QUERY, "variables": {"since": since(), "n": 10}}
        ).body

    return eventually(lambda: (found := body())["errors"] is None and found, "the store is open")[
        "data"
    ]["viewer"]["zones"][0]["total"][0]


def early_in_a_minute() -> None:
    """Return while at least half a minute of the clock's minute is left: rows are written when it
    is over.
    """
    into_s = time.time() % 60
    if into_s > 30:
        time.sleep(
            60.5 - into_s
        )  # the minute that a kill loses has to begin and end with this test's visitors


def test_what_visitors_do_is_what_clients_read(greenroom: Any, origin: Any) -> None:
    running = greenroom.room(origin.url, 2, 100)
    inside = [running.visitor(), running.visitor()]
    for visitor in inside:
        assert not visitor.get().waiting
        visitor.get()
    waiter, begun = running.visitor(), time.monotonic()
    place = waiter.get()
    come = time.monotonic()
    time.sleep(place.refresh_s)  # as the page says
    assert (place.waiting, waiter.get().waiting) == (True, True)
    live = eventually(
        lambda: (room := running.status()["rooms"][0])["waiting_users"] and room,
        "the live figures have the visitor who waits",
    )
    slot_s = SLOT_MS / 1000
    until_s = 2 * slot_s + 0.5 - time.time() % slot_s
    time.sleep(until_s)  # peaks are those of samples: two, as a busy machine can be late for one
    inside[0].get("/?greenroom=leave", "POST", {"Sec-Fetch-Site": "same-origin"})
    asked = time.monotonic()
    while (answer := waiter.get()).waiting:
        time.sleep(answer.refresh_s)  # as the page says
        asked = time.monotonic()
    waited_s = time.monotonic() - begun
    assert running.stop() == 0
    running = greenroom.room(origin.url, 2, 100)
    api = Api(running.control, create_token(greenroom.data, "reader", "--scope", "analytics"))
    row = total(api)
    assert row["sum"]["newUsersPerMinute"] == 3
    assert row["sum"]["usersWaited"] == 1
    assert row["sum"]["usersLeft"] == 1
    assert row["sum"]["sessionsEnded"] == 1
    assert row["sum"]["requestsPassed"] == 2
    assert row["sum"]["requestsHeld"] >= 2
    assert row["sum"]["minutesIncomplete"] == 0
    assert row["max"]["totalActiveUsersConfig"] == 2
    assert row["max"]["newUsersPerMinuteConfig"] == 100
    assert row["max"]["sessionDurationConfig"] == 5
    live_peaks = {
        "totalActiveUsers": live["active_users"],
        "totalQueuedUsers": live["waiting_users"],
    }
    assert live_peaks == {"totalActiveUsers": 2, "totalQueuedUsers": 1}
    assert row["max"] | live_peaks == row["max"], "live figures and the minute agree"
    assert asked - come - 0.5 < row["percentile"]["totalTimeWaitedP50"] <= waited_s + 0.1
    assert 0 <= row["percentile"]["timeOnOriginP50"] < waited_s

    sdk = api.sdk().post(
        "/graphql", body={"query": QUERY, "variables": {"since": since(), "n": 10}}, cast_to=object
    )
    assert sdk["data"]["viewer"]["zones"][0]["total"][0]["sum"] == row["sum"]

    transport = HTTPXTransport(
        url=f"{api.base_url}/graphql", headers={"Authorization": f"Bearer {api.token}"}
    )
    with gql.Client(transport=transport, fetch_schema_from_transport=True) as session:
        query = gql.gql(QUERY)
        query.variable_values = {"since": since(), "n": 10}
        assert session.execute(query)["viewer"]["zones"][0]["total"][0]["sum"] == row["sum"]


def test_kill_9_marks_the_minute_that_was_lost(greenroom: Any, origin: Any) -> None:
    running = greenroom.room(origin.url, 5, 100)
    assert not running.visitor().get().waiting
    running.stop()
    running = greenroom.room(origin.url, 5, 100)
    early_in_a_minute()
    assert not running.visitor().get().waiting
    total(Api(running.control, create_token(greenroom.data, "one", "--scope", "analytics")))
    running.kill()
    running = greenroom.room(origin.url, 5, 100)
    row = total(Api(running.control, create_token(greenroom.data, "two", "--scope", "analytics")))
    assert row["sum"]["newUsersPerMinute"] == 1, (
        "the minute that was under way is lost, and no other"
    )
    assert row["sum"]["minutesIncomplete"] == 1
    running.stop()
    with duckdb.connect(
        str(Path(greenroom.data) / "analytics.duckdb"), read_only=True
    ) as connection:
        assert connection.execute("SELECT sum(incomplete) FROM minutes").fetchall() == [(1,)]


def test_switched_off_nothing_is_recorded_and_clients_are_told(greenroom: Any, origin: Any) -> None:
    config = f'origin = "{origin.url}"\nanalytics = "off"\n[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 5\nnew_users_per_minute = 5\n'
    running = greenroom.config(config)
    assert not running.visitor().get().waiting
    api = Api(running.control, create_token(greenroom.data, "reader", "--scope", "analytics"))
    body = api.ask(
        "POST", "/graphql", {"query": QUERY, "variables": {"since": since(), "n": 1}}
    ).body
    assert "is not recorded by this process" in body["errors"][0]["message"]
    running.stop()
    assert not list(Path(greenroom.data).glob("analytics*"))


def test_a_store_that_cannot_be_opened_stops_no_visitor(greenroom: Any, origin: Any) -> None:
    Path(greenroom.data).mkdir(parents=True, exist_ok=True)
    (Path(greenroom.data) / "analytics.duckdb").write_bytes(b"not a database" * 1_000)
    running = greenroom.room(origin.url, 5, 100)
    assert not running.visitor().get().waiting
    running.wait_until_printed("analytics_not_written")
    assert not running.visitor().get().waiting
    assert running.stop() == 0


def test_the_command_line_reads_the_same_from_a_running_greenroom_and_from_a_stopped_one(
    greenroom: Any, origin: Any, tmp_path: Path
) -> None:
    running = greenroom.room(origin.url, 2, 100)
    for visitor in (running.visitor(), running.visitor()):
        assert not visitor.get().waiting
    running.visitor().take_place()
    running.stop()
    running = greenroom.room(origin.url, 2, 100)
    token = create_token(greenroom.data, "reader", "--scope", "analytics")
    total(Api(running.control, token))
    asked = ("--control", f"{running.control[0]}:{running.control[1]}", "--token", token)
    stopped = ("--data", str(greenroom.data))
    locked = finished("analytics", "show", "main", *stopped)
    assert locked.returncode == 2
    assert "--control" in locked.stderr
    live = {
        form: finished(
            "analytics", "export", "--room", "main", "--from", "1h", "--format", form, *asked
        ).stdout
        for form in ("csv", "json")
    }
    summary = finished("analytics", "show", "main", "--last", "1h", *asked).stdout
    assert "peak" in summary
    assert "let in 2" in summary
    running.kill()
    offline = csv.DictReader(
        finished(
            "analytics", "export", "--room", "main", "--from", "1h", *stopped
        ).stdout.splitlines()
    )
    online = csv.DictReader(live["csv"].splitlines())
    assert offline.fieldnames == online.fieldnames
    same = ("datetime", "newUsersPerMinute", "totalActiveUsers", "totalActiveUsersConfig")
    first, same_row = next(online), next(offline)
    assert [first[name] for name in same] == [same_row[name] for name in same]
    rows = json.loads(live["json"])
    assert sum(row["newUsersPerMinute"] for row in rows) == 2
    assert "let in 2" in finished("analytics", "show", "main", "--last", "1h", *stopped).stdout
    parquet = tmp_path / "out.parquet"
    done = finished(
        "analytics",
        "export",
        "--room",
        "main",
        "--from",
        "1h",
        "--format",
        "parquet",
        "--by",
        "hour",
        "-o",
        str(parquet),
        *stopped,
    )
    assert done.returncode == 0, done.stderr
    assert duckdb.sql(f"SELECT sum(sum_newUsersPerMinute) FROM '{parquet}'").fetchall() == [(2,)]


def test_the_command_line_says_what_is_wrong(greenroom: Any, tmp_path: Path) -> None:
    for arguments, message in (
        (("show", "x", "--data", str(tmp_path)), "there are no analytics in"),
        (("show", "x", "--control", "127.0.0.1:1"), "requires a token"),
        (("show", "x", "--control", "127.0.0.1:1", "--token", "t"), "cannot ask 127.0.0.1:1"),
        (
            ("export", "--room", "x", "--from", "1h", "--format", "xml"),
            "must be one of csv, json, parquet",
        ),
        (("export", "--room", "x", "--from", "1h", "--format", "parquet"), "--output is required"),
    ):
        done = finished("analytics", *arguments)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
