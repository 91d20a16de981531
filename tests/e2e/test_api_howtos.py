"""The scripts in the documents about the API really work, as they are written, against a real
greenroom.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from api_rig import ACCOUNT, Api, create_token

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "howto"
COPY_ROOMS = ROOT / "examples/move-from-cloudflare/copy_rooms.py"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)


def block(page: str, language: str, beginning: str) -> str:
    (found,) = [text for text in blocks(page, language) if text.startswith(beginning)]
    return found


@pytest.fixture
def api(greenroom) -> Api:
    running = greenroom.room("http://127.0.0.1:9", 1000, 1000, "--host", "elsewhere.example.org")
    return Api(running.control, create_token(greenroom.data, "howto", "--scope", "edit"))


def run(command: list[str], api: Api, **more: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("CLOUDFLARE_")
    }
    done = subprocess.run(
        command,
        env={**environment, "TOKEN": api.token, "API": api.base_url, **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_and_the_program_of_the_howto_do_what_it_says(api) -> None:
    script = block("use-the-api.md", "sh", "api=").replace(
        "http://127.0.0.1:8081/client/v4", api.base_url
    )
    run(["bash", "-euo", "pipefail", "-c", script], api)
    (room,) = (
        room
        for room in api.ask("GET", f"/accounts/{ACCOUNT}/waiting_rooms").result
        if room["host"] == "shop.example.com"
    )
    assert room["queue_all"] is True
    printed = run([sys.executable, "-c", block("use-the-api.md", "python", "import os")], api)
    assert printed == "not_queueing\n"
    zone = zone_id(api, "example.com")
    assert [
        event["name"]
        for event in api.ask("GET", f"/zones/{zone}/waiting_rooms/{room['id']}/events").result
    ] == ["sale"]
    assert len(api.ask("GET", f"/zones/{zone}/waiting_rooms/{room['id']}/rules").result) == 1


def test_a_zone_moves_from_one_api_to_another_with_the_script_of_the_howto(
    api, greenroom, tmp_path
) -> None:
    zone = api.ask("POST", "/zones", {"name": "example.com"}).result["id"]
    limits = {"total_active_users": 300, "new_users_per_minute": 200}
    rooms = f"/zones/{zone}/waiting_rooms"
    page = {"custom_page_html": "<p>{{waitTime}}", "queueing_method": "random"}
    room = api.ask(
        "POST", rooms, {"name": "shop", "host": "shop.example.com", **limits, **page}
    ).result["id"]
    api.ask("POST", rooms, {"name": "plain", "host": "plain.example.com", **limits})
    times = {"event_start_time": "2030-01-01T11:00:00Z", "event_end_time": "2030-01-01T12:00:00Z"}
    api.ask(
        "POST",
        f"{rooms}/{room}/events",
        {"name": "sale", "disable_session_renewal": False, **times},
    )
    api.ask(
        "PUT",
        f"{rooms}/{room}/rules",
        [{"action": "bypass_waiting_room", "expression": "ssl", "enabled": False}],
    )
    api.ask("PUT", f"{rooms}/settings", {"search_engine_crawler_bypass": True})

    target = greenroom.room(
        "http://127.0.0.1:9",
        1000,
        1000,
        "--host",
        "elsewhere.example.org",
        "--data",
        str(tmp_path / "other"),
    )
    other = Api(target.control, create_token(tmp_path / "other", "howto", "--scope", "edit"))
    printed = run(
        [sys.executable, str(COPY_ROOMS), "example.com"],
        other,
        THEIRS=api.base_url,
        CLOUDFLARE_API_TOKEN=api.token,
    )
    assert printed == "shop: shop.example.com/\nplain: plain.example.com/\n"
    copied = f"/zones/{zone_id(other, 'example.com')}/waiting_rooms"
    assert other.ask("GET", f"{copied}/settings").result == {"search_engine_crawler_bypass": True}
    here = {room["name"]: room for room in other.ask("GET", copied).result}
    for there in api.ask("GET", rooms).result:
        assert {**here[there["name"]], **own(there)} == there
    inside = f"{copied}/{here['shop']['id']}"
    (event,) = other.ask("GET", f"{inside}/events").result
    assert (event["name"], event["disable_session_renewal"], event["event_start_time"]) == (
        "sale",
        False,
        "2030-01-01T11:00:00Z",
    )
    (rule,) = other.ask("GET", f"{inside}/rules").result
    assert (rule["expression"], rule["enabled"]) == ("ssl", False)
    for zone, words in (("example.com", "has a zone example.com already"), ("a.b", "no zone a.b")):
        again = subprocess.run(
            [sys.executable, str(COPY_ROOMS), zone],
            env={
                **os.environ,
                "TOKEN": other.token,
                "API": other.base_url,
                "THEIRS": api.base_url,
                "CLOUDFLARE_API_TOKEN": api.token,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert again.returncode == 1
        assert words in again.stderr
        assert "Traceback" not in again.stderr


def own(room: dict) -> dict:
    return {
        name: room[name]
        for name in (
            "id",
            "created_on",
            "modified_on",
            "next_event_start_time",
            "next_event_prequeue_start_time",
        )
    }


def zone_id(api: Api, name: str) -> str:
    return api.ask("GET", f"/zones?name={name}").result[0]["id"]
