"""A chat server that takes messages as Slack's incoming webhooks do, and prints them: `python
chat.py [port]`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Chat(BaseHTTPRequestHandler):
    """POST /services/… with a JSON body that has a `text` is a message; anything else is refused,
    as Slack does.
    """

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            message = json.loads(body)
            text = message["text"]
        except (ValueError, KeyError, TypeError):
            self.answer(400, "invalid_payload")
            return
        if not self.path.startswith("/services/"):
            self.answer(404, "no_service")
            return
        print(f"# alerts: {text}", flush=True)
        for attachment in message.get("attachments", []):
            print(f"#         {attachment['text']}", flush=True)
        self.answer(200, "ok")

    def answer(self, status: int, words: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words.encode())

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(
        ("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9701), Chat
    ).serve_forever()
