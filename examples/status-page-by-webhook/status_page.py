"""A status page that is fed by webhooks and believes only those with its secret: `WEBHOOK_SECRET=…
python status_page.py [port]`.
"""

import hmac
import json
import os
import sys
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["WEBHOOK_SECRET"].encode()
CHECKS: dict[str, tuple[str, str]] = {}
"""Name of a health check -> (status, reason), as told last."""


class StatusPage(BaseHTTPRequestHandler):
    """POST /webhook tells it something, GET / shows it."""

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 100_000))
        if self.path != "/webhook":
            self.answer(404, "Path not found")
        elif not hmac.compare_digest(self.headers.get("cf-webhook-auth", "").encode(), SECRET):
            self.answer(401, "wrong secret")
        else:
            told = json.loads(body)
            if "Hello World!" not in told.get("text", ""):  # the test when the webhook is saved
                data = told.get("data", {})
                CHECKS[data.get("name", "Unknown")] = (
                    data.get("status", "Unknown"),
                    data.get("reason", "Unknown"),
                )
            self.answer(200, "ok")

    def do_GET(self) -> None:
        rows = "".join(
            f"<tr><td>{escape(name)}<td>{escape(status)}<td>{escape(reason)}"
            for name, (status, reason) in CHECKS.items()
        )
        table = f"<table><tr><th>check<th>status<th>reason{rows}</table>"
        page = f"<!doctype html><title>Status</title><h1>Status of production servers</h1>{table}"
        self.answer(
            200 if self.path == "/" else 404,
            page if self.path == "/" else "Path not found",
            "text/html; charset=utf-8",
        )

    def answer(self, status: int, text: str, kind: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(
        ("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9711), StatusPage
    ).serve_forever()
