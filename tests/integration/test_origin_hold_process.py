"""A running greenroom notices that the origin is gone, holds new visitors, says so everywhere, and lets them in again."""

import threading
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
    assert running.status()["health_checks"] == [{"name": "origin", "zone": "file", "status": "unhealthy"}]
    assert running.metric('greenroom_room_held_for_origin{room="main"}') == 1
    assert running.metric('greenroom_health_check_healthy{check="origin",zone="file"}') == 0
    server = application(port)
    assert newcomer.wait_until_in(within_s=60).text == "ok"
    assert running.room()["origin"] == "healthy"
    server.shutdown()
    server.server_close()
