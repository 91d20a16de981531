"""The status page of a running greenroom: public, cacheable, harmless, and fed by real rooms, real
checks and real notes.
"""

import http.client
import json
import time
from xml.etree import ElementTree

from api_rig import ACCOUNT, Api, create_token
from receivers import until

CONFIG = """
origin = "{origin}"
status_listen = "127.0.0.1:{port}"

[[rooms]]
name = "shop"
host = "*"
total_active_users = 1
new_users_per_minute = 100

[[rooms]]
name = "secret"
host = "secret.example.com"
total_active_users = 1
new_users_per_minute = 100

[[health_checks]]
name = "origin"
address = "127.0.0.1"
interval = 5
timeout = 1
[health_checks.http_config]
port = {check}

[[status_pages]]
title = "Shop status"
rooms = ["shop"]
health_checks = ["*"]

[[status_pages]]
path = "/rooms"
host = "status.example.com"
title = "Rooms only"
rooms = ["*"]
"""


HELD = """
origin = "{origin}"
status_listen = "127.0.0.1:{port}"

[[rooms]]
name = "held"
host = "held.example.com"
total_active_users = 1
new_users_per_minute = 100
queue_all = true

[[rooms]]
name = "sale"
host = "sale.example.com"
total_active_users = 1
new_users_per_minute = 100
[[rooms.events]]
name = "spring"
prequeue_start_time = 2020-01-01T00:00:00Z
event_start_time = 2090-04-01T10:00:00Z
event_end_time = 2090-04-02T10:00:00Z

[[rooms]]
name = "paused"
host = "paused.example.com"
total_active_users = 1
new_users_per_minute = 100
queue_all = true
suspended = true

[[status_pages]]
title = "Shop status"
rooms = ["*"]
"""


def get(
    port: int, path: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(
            method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


def test_a_page_from_the_first_look_to_an_incident_with_a_note(
    greenroom, origin, free_port
) -> None:
    port, dead = free_port(), free_port()
    running = greenroom.config(CONFIG.format(origin=origin.url, port=port, check=dead))
    running.wait_until_printed(f"status     http://127.0.0.1:{port}")
    status, headers, page = get(port, "/")
    assert status == 200
    assert headers["Cache-Control"] == "public, max-age=10"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Shop status" in page
    assert "secret" not in page
    assert "<script" not in page
    assert get(port, "/", If_None_Match=headers["ETag"])[0] in (200, 304)
    assert get(port, "/", "HEAD")[2] == ""
    assert get(port, "/", "POST")[0] == 405
    assert get(port, "/nothing")[0] == get(port, "/rooms")[0] == 404
    assert "Rooms only" in get(port, "/rooms", Host="status.example.com")[2]
    assert get(port, "/rooms/status.json", Host="status.example.com")[0] == 200

    def components() -> dict[str, str]:
        return {
            each["name"]: each["description"]
            for each in json.loads(get(port, "/status.json")[2])["components"]
        }

    until(lambda: components() == {"origin": "Not working", "Website": "Open"}, 40)
    document = json.loads(get(port, "/status.json")[2])
    (incident,) = document["incidents"]
    assert (document["status"], incident["title"], incident["ended_at"]) == (
        "bad",
        "origin is not working",
        None,
    )
    api = Api(running.control, create_token(greenroom.data, "status", "--scope", "edit"))
    (known,) = api.ask("GET", f"/accounts/{ACCOUNT}/incidents").result
    assert (known["id"], known["subject"]) == (incident["id"], "origin")
    note = {"incident": known["id"], "text": "We know, and are <b>working</b> on it."}
    assert api.ask("POST", f"/accounts/{ACCOUNT}/incident_notes", note).status == 200
    until(lambda: "We know, and are &lt;b&gt;working" in get(port, "/")[2])
    own = {"path": "/own", "title": "Made here", "health_checks": ["*"]}
    assert api.ask("POST", f"/accounts/{ACCOUNT}/status_pages", own).status == 200
    until(lambda: "<h1>Made here</h1>" in get(port, "/own")[2])
    assert (
        api.ask("POST", f"/accounts/{ACCOUNT}/status_pages", {"path": "/"}).status == 400
    )  # the file has it
    feed = ElementTree.fromstring(get(port, "/feed.atom")[2])
    assert feed.findtext("{*}entry/{*}title") == "origin is not working"
    assert "We know" in (feed.findtext("{*}entry/{*}content") or "")


def test_a_crowd_costs_one_look_in_ten_seconds(greenroom, origin, free_port) -> None:
    port = free_port()
    greenroom.config(CONFIG.format(origin=origin.url, port=port, check=free_port()))
    until(lambda: get(port, "/status.json")[0] == 200)
    begun = time.monotonic()
    stamps = {json.loads(get(port, "/status.json")[2])["updated_at"] for _ in range(100)}
    assert len(stamps) <= 1 + (time.monotonic() - begun) // 10 + 1


def test_a_page_of_the_store_is_public_at_its_own_address_without_a_restart(
    greenroom, origin, free_port
) -> None:
    running = greenroom.room(origin.url)
    assert "\nstatus     " not in running.output
    port = free_port()
    api = Api(running.control, create_token(greenroom.data, "status", "--scope", "edit"))
    pages = f"/accounts/{ACCOUNT}/status_pages"
    page = {"title": "Shop status", "rooms": ["*"], "listen": f"127.0.0.1:{port}"}
    made = api.ask("POST", pages, page).result
    running.wait_until_printed(f"status     http://127.0.0.1:{port}")
    assert "Shop status" in get(port, "/")[2]
    taken = {"path": "/taken", "listen": f"127.0.0.1:{running.control[1]}"}
    api.ask("POST", pages, taken).result  # noqa: B018  fails if refused
    running.wait_until_printed("status_page_not_served")
    assert get(port, "/taken")[0] == 404
    assert api.ask("DELETE", f"{pages}/{made['id']}").status == 200

    def closed() -> bool:
        try:
            return get(port, "/")[0] == 0
        except OSError:
            return True

    until(closed)


def test_a_room_that_holds_every_new_visitor_is_not_called_open(
    greenroom, origin, free_port
) -> None:
    port = free_port()
    running = greenroom.config(HELD.format(origin=origin.url, port=port))
    running.wait_until_printed(f"status     http://127.0.0.1:{port}")
    document = json.loads(get(port, "/status.json")[2])
    assert {each["name"]: each["description"] for each in document["components"]} == {
        "held.example.com": "All new visitors wait at the moment",
        "sale.example.com": "Lets visitors in from 01 April 2090, 10:00 UTC",
        "paused.example.com": "Open",
    }
    assert document["status"] == "busy"
