"""A running greenroom notices that the origin is gone, holds new visitors, says so everywhere, and
lets them in again.
"""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONFIG = """
origin = "http://127.0.0.1:{port}"
[[rooms]]
name = "main"
host = "*"
total_active_users = 10
new_users_per_minute = 100
on_unhealthy_origin = "hold"
[[health_checks]]
name = "origin"
address = "127.0.0.1"
interval = 1
http_config = {{ port = {port} }}
"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Origin", "yes")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def application(port: int) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def test_an_origin_that_goes_and_comes_back(greenroom, free_port) -> None:
    port = free_port()
    server = application(port)
    running = greenroom.config(CONFIG.format(port=port))
    greenroom.eventually(lambda: running.room()["origin"] == "healthy", "the origin is known")
    assert running.visitor().get().text == "ok"
    server.shutdown()
    server.server_close()
    greenroom.eventually(lambda: running.room()["held_for_origin"], "new visitors are held")
    newcomer = running.visitor()
    assert "A short pause" in newcomer.get().text
    assert running.status()["health_checks"] == [
        {"name": "origin", "zone": "file", "status": "unhealthy"}
    ]
    assert running.metric('greenroom_room_held_for_origin{room="main"}') == 1
    assert running.metric('greenroom_health_check_healthy{check="origin",zone="file"}') == 0
    server = application(port)
    assert newcomer.wait_until_in(within_s=60).text == "ok"
    assert running.room()["origin"] == "healthy"
    server.shutdown()
    server.server_close()


def test_a_restart_lets_no_visitor_to_an_origin_that_is_down(greenroom, free_port) -> None:
    port, ours = free_port(), f"127.0.0.1:{free_port()}"
    config = CONFIG.format(port=port).replace("interval = 1", "interval = 10")
    running = greenroom.config(config, "--listen", ours)
    greenroom.eventually(lambda: running.room()["origin"] == "unhealthy", "the origin is known")
    active = running.room()["active_users"]  # from before the first probe
    running.stop()
    running = greenroom.config(config, "--listen", ours)
    until_s = time.monotonic() + 2
    while time.monotonic() < until_s:
        assert "A short pause" in running.visitor().get().text
        time.sleep(0.02)  # the process reads what it knew of the origin meanwhile
    assert running.room()["active_users"] == active
    assert running.room()["origin"] == "unhealthy"


def test_a_room_without_checks_lets_visitors_in_from_the_start(greenroom, free_port) -> None:
    port = free_port()
    server = application(port)
    running = greenroom.config(CONFIG.format(port=port).partition("[[health_checks]]")[0])
    assert running.visitor().get().text == "ok"
    server.shutdown()
    server.server_close()
