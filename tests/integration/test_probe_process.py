"""`greenroom probe` as a real process beside a real greenroom: joins, probes, is killed, comes
back, leaves; and says what is wrong.
"""

import json
from pathlib import Path

import pytest
from api_rig import ACCOUNT, Api, create_token
from warm_start import finished

CONFIG = """
origin = "{url}"
[[rooms]]
name = "main"
host = "*"
total_active_users = 10
new_users_per_minute = 100
[health]
probe = false
[[health_checks]]
name = "origin"
address = "127.0.0.1"
interval = 1
check_regions = ["WEU"]
http_config = {{ port = {port} }}
"""


def agents(api: Api) -> list[tuple[str, bool]]:
    return [
        (agent["name"], agent["lost"])
        for agent in api.ask("GET", f"/accounts/{ACCOUNT}/probe_agents").result
    ]


def test_an_agent_joins_is_killed_comes_back_and_leaves(greenroom, origin) -> None:
    running = greenroom.config(CONFIG.format(url=origin.url, port=origin.url.rpartition(":")[2]))
    reader = Api(running.control, create_token(greenroom.data, "reader", "--scope", "read"))
    token = create_token(greenroom.data, "agents", "--scope", "probe")
    url = f"http://{running.control[0]}:{running.control[1]}"
    join = [
        "probe",
        "--join",
        "http://127.0.0.1:9",
        "--join",
        url,
        "--region",
        "WEU",
        "--name",
        "paris",
    ]
    assert running.status()["health_checks"][0]["status"] == "unknown", "nobody probes"
    agent = greenroom.run(*join, env={"GREENROOM_PROBE_TOKEN": token})
    greenroom.eventually(
        lambda: running.status()["health_checks"][0]["status"] == "healthy",
        "the agent's verdict",
        60,
    )
    assert agents(reader) == [("paris", False)]
    agent.kill()
    again = greenroom.run(*join, env={"GREENROOM_PROBE_TOKEN": token})
    again.wait_until_printed("checks_received")
    assert agents(reader) == [("paris", False)]
    assert again.stop() == 0
    assert agents(reader) == []


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["--join", "greenroom.example.com", "--region", "WEU"], 2, "--join"),
        (["--join", "http://127.0.0.1:9", "--region", "MARS"], 2, "--region: must be one of"),
        (["--join", "http://127.0.0.1:9", "--region", "WEU", "--name", "a b"], 2, "--name"),
        (
            ["--join", "http://127.0.0.1:9", "--region", "WEU", "--ca-file", "/nowhere"],
            1,
            "No such file",
        ),
    ],
)
def test_what_is_wrong_is_said_at_once(
    tmp_path: Path, options: list[str], code: int, reason: str
) -> None:
    done = finished("probe", "--token", "t", *options)
    assert done.returncode == code
    assert reason in done.stderr


def test_a_token_that_may_not_report_is_refused_with_the_reason(greenroom, origin) -> None:
    running = greenroom.room(origin.url)
    token = create_token(greenroom.data, "reader", "--scope", "read")
    url = f"http://{running.control[0]}:{running.control[1]}"
    done = finished("probe", "--join", url, "--region", "WEU", "--token", token)
    assert done.returncode == 1
    assert "lacks the scope probe" in done.stderr
    assert json.loads(running.ask("/status").body)["health_checks"] == []
