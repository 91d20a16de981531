"""Sign-in to a Prometheus that rooms ask: where the secret goes, and where it must never go."""

import asyncio
import base64
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from admission_world import small_room

from greenroom.config_file.load import config_of
from greenroom.config_file.process_config import ProcessConfig
from greenroom.errors import InvalidConfig
from greenroom.outbound import Guard, OutboundPolicy
from greenroom.outbound.exchange import Request
from greenroom.runtime.prometheus import PrometheusFigures

SECRET = "s3cret.token"
LOGIN = 'url = "https://prometheus.example.com/api/v1/query"\n'


def read(text: str, folder: Path) -> ProcessConfig:
    (folder / "token").write_text(f"{SECRET}\nsecond line\n")
    start = 'origin = "http://127.0.0.1:9"\n[[prometheus]]\n'
    return config_of(tomllib.loads(start + text), folder / "greenroom.toml")


def problems(text: str, folder: Path) -> str:
    with pytest.raises(InvalidConfig) as refused:
        read(text, folder)
    assert SECRET not in str(refused.value)
    return "; ".join(map(str, refused.value.problems))


def test_the_secret_is_the_first_line_of_a_file_that_is_watched(tmp_path: Path) -> None:
    url = "https://prometheus.example.com/api/v1/query"
    config = read(LOGIN + 'token_file = "token"', tmp_path)
    assert config.prometheus_logins == {url: f"Bearer {SECRET}"}
    assert tmp_path / "token" in config.files
    assert SECRET not in repr(config)
    config = read(LOGIN + 'user = "reader"\npassword_file = "token"', tmp_path)
    basic = base64.b64encode(f"reader:{SECRET}".encode()).decode()
    assert config.prometheus_logins == {url: f"Basic {basic}"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LOGIN, "prometheus[0]: needs one of token_file and user"),
        (LOGIN + 'token_file = "token"\nuser = "a"\npassword_file = "token"', "needs one of"),
        (LOGIN + 'user = "a"', "password_file: must be given together with user"),
        (LOGIN + 'user = "a:b"\npassword_file = "token"', "must not contain a colon"),
        (LOGIN + 'token_file = "none"', "prometheus[0].token_file: cannot read"),
        (LOGIN + 'token_file = "blank"', "printable ASCII characters without blanks"),
        (LOGIN + 'token_file = "token"\n[[prometheus]]\n' + LOGIN + 'token_file = "token"', "twice"),
        ('url = "https://a.example/q?query=x"\ntoken_file = "token"', "must end before ?query="),
        ('url = "http://prometheus.example.com/q"\ntoken_file = "token"', "must begin with https://"),
        ('url = "http://8.8.8.8/q"\ntoken_file = "token"', "must begin with https://"),
        ('url = "ftp://a.example/q"\ntoken_file = "token"', "prometheus[0].url"),
        (LOGIN + 'token = "x"', "token"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_without_the_secret(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "blank").write_text(f"{SECRET} and more")
    assert words in problems(text, tmp_path)


class Prometheus(BaseHTTPRequestHandler):
    """Demands the sign-in; `elsewhere` redirects to a server of somebody else."""

    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path.partition("?")[0], self.headers["Authorization"]))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
        else:
            self.send_response(422 if self.headers["Authorization"] else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Prometheus.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Prometheus) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def asked(server: str, path: str, login: str) -> str:
    """Why there are no figures."""
    figures = PrometheusFigures(Guard(OutboundPolicy(ports=(), allowed=("127.0.0.1",))), lambda: 0)
    figures.logins = {f"{server}{login}": f"Bearer {SECRET}"}
    room = small_room(capacity="follow", capacity_metrics=f"{server}{path}?query=x_bucket")
    asyncio.run(figures.ask([room]))
    reason = figures.reasons[room.id]
    assert SECRET not in reason
    return reason


def test_the_secret_is_sent_to_its_url_only(server: str) -> None:
    assert "status 401" not in asked(server, "/api/v1/query", "/api/v1/query")
    assert "status 401" in asked(server, "/other", "/api/v1/query")
    assert "status 401" in asked(server, "/api/v1/query2", "/api/v1/query")
    assert [login for _, login in Prometheus.seen] == [f"Bearer {SECRET}", None, None]


def test_no_redirect_takes_the_secret_away(server: str) -> None:
    assert "status 302" in asked(server, "/moved", "/moved")
    assert [path for path, _ in Prometheus.seen] == ["/moved"]


def test_a_request_never_shows_its_headers() -> None:
    request = Request("GET", "https://a.example", (("Authorization", f"Bearer {SECRET}"),))
    assert SECRET not in repr(request)
