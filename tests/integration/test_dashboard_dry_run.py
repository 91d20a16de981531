"""Dry runs in the dashboard: in a process of their own, with a result in words and as a table, for
the room they belong to only.
"""

import html
import json
import re
import time
from collections.abc import Iterator

import pytest
from dashboard_rig import DashboardRig, dashboard_in

from greenroom.model.event import Event
from greenroom.runtime.dry_runs import WAITING_MAX, DryRunProcesses

PATIENCE_S = 90
DRY_RUN = "/zones/z1/rooms/r1/dry-run"
CROWD = {"visitors": "60", "minutes": "1", "curve": "flat"}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path_factory.mktemp("dry-run")) as found:
        found.fill()
        yield found


def test_what_settings_mean_is_simulated_in_the_background_while_they_are_typed(
    rig: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DryRunProcesses()
    monkeypatch.setattr(rig.dry_runs, "example", real.example)
    visitor = rig.person("operator")
    typed = "/zones/z1/rooms/meaning?total_active_users=30000&new_users_per_minute=20000&session_duration=1&queueing_method=fifo"
    text = visitor.get(typed, **{"HX-Request": "true"}).text
    assert "At most 30,000 people" in text
    assert "Simulating the wait for" in text
    again = html.unescape(text.partition('hx-get="')[2].partition('"')[0])
    end = time.monotonic() + PATIENCE_S
    while "hx-get" in (text := visitor.get(again, **{"HX-Request": "true"}).text):
        assert time.monotonic() < end, text
        time.sleep(0.2)  # another process simulates
    assert "no one waits for more than a minute" in text
    assert "no one waits for more than a minute" in visitor.get(typed).text


def test_settings_that_are_not_possible_mean_nothing(rig: DashboardRig) -> None:
    for query, example in (
        ("total_active_users=5&new_users_per_minute=9", 200),
        ("total_active_users=x&new_users_per_minute=<b>", 404),
        ("", 404),
    ):
        answer = rig.person("operator").get(f"/zones/z1/rooms/meaning?{query}")
        assert "Fix the highlighted fields to see what this means" in answer.text
        found = rig.person("operator").get(f"/zones/z1/rooms/meaning/example?{query}")
        assert found.status_code == example, (
            "a room of a configuration file may let in more a minute than it takes at once"
        )


def test_examples_do_not_start_more_processes_than_may_wait() -> None:
    runs = DryRunProcesses()
    runs._free_for_examples.acquire()  # as long as one is being simulated
    asked = [runs.example({"total_active_users": number}) for number in range(WAITING_MAX + 3)]
    assert not any(one.ended for one in asked)
    assert len(runs._examples) == WAITING_MAX


def test_a_dry_run_says_what_would_happen_and_what_other_limits_would_change(
    rig: DashboardRig,
) -> None:
    visitor = rig.person("operator")
    other = {"total_active_users": "900", "new_users_per_minute": "900"}
    answer = visitor.post(DRY_RUN, **CROWD, **other)
    assert answer.status_code == 303, answer.text
    where = answer.headers["location"]
    end = time.monotonic() + PATIENCE_S
    while "Simulating" in (text := visitor.get(where).text):
        assert "every 1s" in text
        assert time.monotonic() < end, text
        time.sleep(0.2)  # another process simulates
    plain = html.unescape(text)
    assert f'href="{DRY_RUN}?visitors=60&minutes=1' in plain
    assert (
        'name="visitors" id="f-visitors" value="60"' in visitor.get(f"{DRY_RUN}?visitors=60").text
    )
    limits = "total_active_users=900&new_users_per_minute=900"
    assert f'href="/zones/z1/rooms/r1/edit?{limits}"' in plain
    prefilled = visitor.get(f"/zones/z1/rooms/r1/edit?{limits}").text
    assert prefilled.count('value="900"') == 2
    assert "What would happen" in text
    assert "900 at once" in text
    assert "No one waits" in text
    found = re.search(r'data-dry-run="([^"]+)"', text)
    lines = json.loads(html.unescape(found[1])) if found else []
    assert [one["label"] for one in lines] == ["As configured", "With the other limits"]
    table = text.partition('id="dry-run-table"')[2].partition("</table>")[0]
    assert table.count("<tr>") == 14
    assert "<html" not in visitor.get(where, **{"HX-Request": "true"}).text
    assert rig.person("operator", "z2").get(where).status_code == 404
    assert rig.person("admin").get(where.replace("z1/rooms/r1", "z2/rooms/r2")).status_code == 404
    assert rig.person("viewer").get(where).status_code == 403


def test_everything_wrong_is_told_at_once_beside_its_field(rig: DashboardRig) -> None:
    wrong = {"visitors": "many", "minutes": "0", "new_users_per_minute": "9000000", "rows": "x"}
    answer = rig.person("operator").post(DRY_RUN, **wrong)
    text = html.unescape(answer.text)
    assert answer.status_code == 400
    for said in (
        "must be a whole number from 1 to 2000000, not 'many'",
        "from 1 to 10080, not '0'",
        "must be at most the active visitors",
    ):
        assert said in text
    table = rig.person("operator").post(DRY_RUN, rows="second,visitors\n0,1\nx,2")
    assert "line 3: second must be a number" in html.unescape(table.text)


def test_the_settings_of_an_event_are_tried(rig: DashboardRig) -> None:
    text = rig.person("operator").get(f"{DRY_RUN}?event=e1").text
    assert '<input type="hidden" name="event" value="e1">' in text
    assert 'name="event"' not in rig.person("operator").get(f"{DRY_RUN}?event=unknown").text


def test_the_pre_queue_and_the_draw_of_an_event_are_simulated(rig: DashboardRig) -> None:
    start_ms = rig.clock.at_ms + 86_400_000
    times = {
        "prequeue_start_ms": start_ms - 600_000,
        "event_start_ms": start_ms,
        "event_end_ms": start_ms + 3_600_000,
    }
    rig.put((Event(id="e2", name="sale", shuffle_at_event_start=True, **times), "r1"))
    visitor = rig.person("operator")
    text = visitor.get(f"{DRY_RUN}?event=e2").text
    assert "randomized at the start" in text
    assert "In the pre-queue (%)" in text
    assert "In the pre-queue (%)" not in visitor.get(DRY_RUN).text
    assert "In the pre-queue (%)" in visitor.get(f"{DRY_RUN}?event=e1").text
    answer = visitor.post(DRY_RUN, event="e2", early_percent="75", **CROWD)
    run = rig.dry_runs.find(answer.headers["location"].rpartition("/")[2].partition("?")[0])
    assert run is not None
    assert (run.wanted["prequeue_s"], run.wanted["early"], run.wanted["shuffle"]) == (
        600.0,
        0.75,
        True,
    )
    end = time.monotonic() + PATIENCE_S
    while "Simulating" in (text := visitor.get(answer.headers["location"]).text):
        assert time.monotonic() < end, text
        time.sleep(0.2)  # another process simulates
    assert "after the start, p95" in text
    assert "with a randomized pre-queue" in " ".join(text.split()).replace(
        "with the rules of the gateway and a", "with a"
    )
    assert "Start of the event" in text
    wrong = visitor.post(DRY_RUN, event="e2", early_percent="101", **CROWD)
    assert "must be a whole number from 0 to 100" in html.unescape(wrong.text)


def test_only_some_dry_runs_wait_at_once() -> None:
    runs = DryRunProcesses()
    runs._free.acquire()  # as long as one is being simulated
    settings = {"total_active_users": 5, "new_users_per_minute": 5}
    wanted = {"settings": [settings], "visitors": 1, "minutes": 1}
    assert all(runs.start("r1", wanted) for _ in range(WAITING_MAX))
    assert runs.start("r1", wanted) is None
