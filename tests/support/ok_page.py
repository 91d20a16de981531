"""A page that says ok, for origins of which nothing else is asked."""

from http.server import BaseHTTPRequestHandler


class OkPage(BaseHTTPRequestHandler):
    """For an HTTPServer."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass
