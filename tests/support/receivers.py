"""Real receivers of notifications: a web server and a mail server that take, fail, hang and refuse
as a test says.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as email_policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from ports import free_port

START_S = 60.0
"""How long a mail server may take to start; the five seconds that its library gives it are too few
on a busy machine.
"""

Behaviour = Callable[[int], int | str]
"""(number of the request, from 0) -> status to answer, or `hang`, `close`."""


class WebReceiver:
    """Keeps everything that came; `behave` decides on the answers and may be replaced."""

    def __init__(self, behave: Behaviour = lambda _n: 200, port: int = 0) -> None:
        self.behave = behave
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.taken: list[Any] = []
        self.body = b"ok"
        self.headers: dict[str, str] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                document = json.loads(body) if body else None
                what = receiver.behave(
                    len(receiver.requests)
                )  # before it is seen, so that a test may change its mind then
                receiver.requests.append(
                    (
                        self.path,
                        {name.lower(): value for name, value in self.headers.items()},
                        document,
                    )
                )
                if what == "hang":
                    time.sleep(60)  # longer than any sender waits
                    return
                if what == "close":
                    self.connection.close()
                    return
                if 200 <= int(what) < 300:
                    receiver.taken.append(document)
                self.send_response(int(what))
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(receiver.body)))
                self.end_headers()
                self.wfile.write(receiver.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """From now on connections are refused."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def correlations(self) -> list[tuple[str, str]]:
        """(correlation id, event) of everything that was taken, in order."""
        return [(each["alert_correlation_id"], each.get("alert_event", "")) for each in self.taken]


class MailReceiver:
    """A mail server; `answer` gives the reply to each message, and the reply to RCPT when it begins
    with `rcpt `.
    """

    def __init__(
        self, answer: Callable[[int], str] = lambda _n: "250 OK", port: int = 0, **options: Any
    ) -> None:
        self.answer = answer
        self.messages: list[tuple[list[str], EmailMessage]] = []
        self.tries = 0
        self.introduced_as = ""
        self.port = port or free_port()
        options.setdefault("ready_timeout", START_S)
        options.setdefault(
            "server_hostname", "mail.test"
        )  # otherwise it asks name servers for this machine's, at every connection
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, **options)
        self._controller.start()

    async def handle_RCPT(self, _server, session, envelope, address, _options) -> str:  # noqa: N802
        self.introduced_as = session.host_name
        said = self.answer(self.tries)
        if said.startswith("rcpt "):
            self.tries += 1
            return said[5:]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802
        said = self.answer(self.tries)
        self.tries += 1
        if said == "hang":
            await asyncio.sleep(60)  # longer than any sender waits
        if said.startswith("250"):
            self.messages.append(
                (envelope.rcpt_tos, message_from_bytes(envelope.content, policy=email_policy))
            )
        return said

    def close(self) -> None:
        self._controller.stop()


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits for something that another thread or process does."""
    for _ in ticks(seconds):
        if done():
            return
    raise AssertionError("it did not happen in time")


def ticks(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.01)  # the work of others, in real time
