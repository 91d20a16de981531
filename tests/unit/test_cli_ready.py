"""`greenroom ready`: what a container's health check runs."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from typer.testing import CliRunner, Result

from greenroom.cli import app


class Control(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        assert self.path == "/readyz"
        told = {200: b"serving\n", 503: b"draining\n"}[self.server.status]  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def address_string(self) -> str:
        return ""

    def log_message(self, *_: object) -> None:
        pass


class OverFile(ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)  # type: ignore[arg-type]
        self.server_name, self.server_port = "", 0


Start = Callable[..., ThreadingHTTPServer]


@pytest.fixture
def control() -> Iterator[Start]:
    with ExitStack() as ending:

        def start(
            place: Path | None = None, status: int = 200, tls: ssl.SSLContext | None = None
        ) -> ThreadingHTTPServer:
            server = ending.enter_context(
                OverFile(str(place), Control) if place else ThreadingHTTPServer(("", 0), Control)
            )
            if tls:
                server.socket = tls.wrap_socket(server.socket, server_side=True)
            server.status = status  # type: ignore[attr-defined]
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            ending.callback(server.shutdown)
            return server

        yield start


def ready(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["ready", *arguments])


def file(folder: Path, text: str) -> tuple[str, str]:
    (folder / "greenroom.toml").write_text(text)
    return "--config", str(folder / "greenroom.toml")


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_it_exits_by_what_readyz_says(
    status: int, code: int, control: Start, tmp_path: Path
) -> None:
    port = control(status=status).server_port
    found = ready(*file(tmp_path, f'control = "0.0.0.0:{port}"'))
    assert (found.exit_code, code == 0) == (code, "serving" in found.output)
    assert ready("--control", f"127.0.0.1:{port}").exit_code == code
    control(tmp_path / "a.sock", status)
    assert ready(*file(tmp_path, f'control = "unix:{tmp_path}/a.sock"')).exit_code == code


def test_over_tls_it_trusts_the_certificate_of_the_file_alone(
    control: Start, tmp_path: Path
) -> None:
    made = [trustme.CA().issue_cert("shop.example.com") for _ in range(2)]
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made[0].configure_cert(served)
    port = control(tls=served).server_port
    text = f'control = "127.0.0.1:{port}"\n[control_tls]\ncert = "cert.pem"\nkey = "key.pem"\n'
    for one, code in zip(made, (0, 1), strict=True):
        one.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        assert ready(*file(tmp_path, text)).exit_code == code


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    assert "127.0.0.1:1" in ready("--control", "127.0.0.1:1").output
    assert ready("--control", "127.0.0.1:1").exit_code == 1
    assert ready("--control", "nowhere").exit_code == 2
    assert ready(*file(tmp_path, "control = [")).exit_code == 2
