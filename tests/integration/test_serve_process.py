"""`greenroom serve` as an operator runs it: a real process, visitors with cookie jars, signals."""

import datetime
import http.client
import json
import re
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ROOM = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = {active}\nnew_users_per_minute = 100\n'


def test_a_full_room_holds_the_next_visitor_and_lets_the_first_one_on(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 1)
    first, second = running.visitor(), running.visitor()
    assert first.get("/shop").status == 200
    assert second.get("/shop").waiting
    assert second.get("/shop").waiting
    assert not first.get("/shop/x").waiting
    assert origin.requests == ["GET /shop", "GET /shop/x"]
    assert "__cfwaitingroom" in second.cookies
    assert running.room()["active_users"] == 1


def test_each_host_may_have_an_origin_of_its_own(
    greenroom, origin, refusing_port: Callable[[], int]
) -> None:
    running = greenroom.config(
        f'origin = "http://127.0.0.1:{refusing_port()}"\n[origins]\n"shop.example.com" = "{origin.url}"\n'
        + ROOM.format(active=50)
    )
    assert running.visitor().get().status == 200
    assert running.visitor("other.example.com").get().status == 502


def test_the_control_listener_is_not_public_and_the_public_one_not_control(
    greenroom, origin
) -> None:
    running = greenroom.room(origin.url, 5)
    assert running.control[0] == "127.0.0.1"
    for path in ("/metrics", "/healthz", "/readyz", "/status"):
        assert running.ask(path).status == 200
        assert not running.visitor().get(path).waiting
    assert running.ask("/shop").status == 404
    assert origin.requests == ["GET /metrics", "GET /healthz", "GET /readyz", "GET /status"]


def test_metrics_count_what_happened(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 1, 7)
    first, second = running.visitor(), running.visitor()
    first.get()
    first.get()
    second.get()
    assert running.metric('greenroom_room_active_users{room="main"}') == 1
    assert running.metric('greenroom_room_admitted_total{room="main"}') == 1
    assert running.metric('greenroom_room_requests_total{result="active",room="main"}') == 1
    assert running.metric('greenroom_room_requests_total{result="held",room="main"}') == 1
    assert running.metric('greenroom_room_new_users_per_minute_limit{room="main"}') == 7
    assert running.metric('greenroom_room_journal_bytes{room="main"}') > 0
    assert running.metric("greenroom_gateway_requests_total") == 3
    assert running.metric("greenroom_gateway_origin_2xx_total") == 2
    assert running.metric("greenroom_ready") == 1
    assert running.metric("greenroom_config_valid") == 1


def test_it_says_where_it_is_and_where_the_data_is(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 1)
    assert f"data       {greenroom.data}" in running.output
    assert f"origin     {origin.url}" in running.output
    assert greenroom.data.stat().st_mode & 0o777 == 0o700
    wal = greenroom.data / "analytics.duckdb.wal"
    greenroom.eventually(wal.exists, "the store of analytics is open")
    modes = {
        path.name: path.stat().st_mode & 0o777
        for path in greenroom.data.rglob("*")
        if path.is_file()
    }
    assert {"keys.json", "pid"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_it_runs_without_uvloop(greenroom, origin) -> None:
    (greenroom.folder / "uvloop.py").write_text("raise ImportError('not here')\n")
    limits = ("--origin", origin.url, "--total-active-users", "1", "--new-users-per-minute", "1")
    places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(greenroom.data))
    running = greenroom.run(
        "serve", *places, *limits, env={"PYTHONPATH": str(greenroom.folder)}
    ).wait_until_ready()
    assert running.visitor().get().status == 200
    assert running.stop() == 0


# -- what keeps it from starting: one clear line, no traceback -------------------------------------


def refused(running, code: int, said: str) -> None:
    assert running.end() == code
    assert said in running.output
    assert "Traceback" not in running.output
    assert running.output.count("\n") <= 2


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_an_address_in_use(greenroom, origin, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        limits = ("--total-active-users", "1", "--new-users-per-minute", "1")
        running = greenroom.serve("--origin", origin.url, *limits, option, address, ready=False)
        refused(running, 2, f"cannot listen on {address}")
        assert "another program is already listening there" in running.output


def test_an_address_that_is_not_ours(greenroom, origin) -> None:
    limits = ("--total-active-users", "1", "--new-users-per-minute", "1")
    refused(
        greenroom.serve("--origin", origin.url, *limits, "--listen", "192.0.2.1:80", ready=False),
        2,
        "cannot listen on 192.0.2.1:80",
    )


def test_a_data_directory_that_cannot_be_written(greenroom, origin, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    limits = ("--total-active-users", "1", "--new-users-per-minute", "1")
    running = greenroom.serve(
        "--origin", origin.url, *limits, "--data", str(tmp_path / "file" / "data"), ready=False
    )
    refused(running, 2, f"cannot use the data directory {tmp_path}/file/data: Not a directory")


def test_a_data_directory_in_use(greenroom, origin) -> None:
    first = greenroom.room(origin.url, 1)
    limits = ("--total-active-users", "1", "--new-users-per-minute", "1")
    refused(
        greenroom.serve("--origin", origin.url, *limits, ready=False),
        2,
        f"is in use by process {first.process.pid}",
    )
    assert first.stop() == 0
    assert greenroom.room(origin.url, 1).alive


def test_a_broken_file(greenroom) -> None:
    running = greenroom.config("origin = 3\n", ready=False)
    assert running.end() == 1
    assert f"{greenroom.folder}/greenroom.toml:1: origin: must be an object" in running.output


def test_keys_that_others_can_read(greenroom, origin) -> None:
    greenroom.room(origin.url, 1).stop()
    (greenroom.data / "keys.json").chmod(0o644)
    limits = ("--total-active-users", "1", "--new-users-per-minute", "1")
    running = greenroom.serve("--origin", origin.url, *limits, ready=False)
    refused(running, 1, "do chmod 600")


# -- the end ---------------------------------------------------------------------------------------


def slow_request(running, seconds: float) -> tuple[threading.Thread, list]:
    """A visitor who is in the middle of an answer that takes a while."""
    got: list = []

    def visit() -> None:
        try:
            got.append(running.visitor().get(f"/slow?{seconds}").status)
        except (OSError, http.client.HTTPException) as error:
            got.append(error)

    thread = threading.Thread(target=visit)
    thread.start()
    return thread, got


def test_sigterm_lets_an_answer_under_way_end_and_says_so(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 5)
    address = running.address
    thread, got = slow_request(running, 60)
    origin.wait_for_request()
    running.send(signal.SIGTERM)
    running.wait_until_printed("draining: 1 request in progress")
    assert running.ask("/readyz").status == 503
    assert running.ask("/healthz").status == 200
    assert running.metric("greenroom_ready") == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    origin.ends.set()
    assert running.end() == 0
    thread.join()
    assert got == [200]


def test_a_second_sigterm_does_not_wait(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 5)
    thread, got = slow_request(running, 60)
    origin.wait_for_request()
    running.send(signal.SIGTERM)
    running.wait_until_printed("draining")
    running.send(signal.SIGTERM)
    assert running.end(25) == 0
    assert "1 request was cut off" in running.output
    thread.join()
    assert isinstance(got[0], Exception)


def test_a_drain_has_an_end(greenroom, origin) -> None:
    running = greenroom.config(
        f'origin = "{origin.url}"\ndrain_seconds = 1\n' + ROOM.format(active=50)
    )
    thread, _ = slow_request(running, 60)
    origin.wait_for_request()
    running.send(signal.SIGTERM)
    assert running.end(25) == 0
    assert "cut off" in running.output
    thread.join()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_greenroom_ends_at_once(greenroom, origin, number: signal.Signals) -> None:
    running = greenroom.room(origin.url, 5)
    kept = http.client.HTTPConnection(*running.address)
    kept.request("GET", "/", headers={"Host": "a"})
    kept.getresponse().read()
    running.send(number)
    assert running.end(25) == 0
    assert running.output.endswith("stopped\n")
    kept.close()


# -- logs ------------------------------------------------------------------------------------------


def test_logs_are_json_when_wanted_and_hold_no_secret(greenroom, origin) -> None:
    log = '[log]\nformat = "json"\nlevel = "debug"\naccess = "json"\n'
    running = greenroom.config(f'origin = "{origin.url}"\n{log}' + ROOM.format(active=1))
    visitor = running.visitor()
    secrets = {"Authorization": "Bearer hunter2", "Referer": "http://shop.example/?hunter2"}
    visitor.get("/path?password=hunter2", headers=secrets)
    visitor.get("/path?password=hunter2", headers=secrets)
    ticket = visitor.cookies["__cfwaitingroom"]
    running.visitor().get("/held")
    running.send(signal.SIGHUP)
    running.wait_until_printed("config_loaded")
    running.stop()
    lines = [json.loads(line) for line in running.output.splitlines() if line.startswith("{")]
    requests = [line for line in lines if "handled" in line]
    said = [
        (line["path"], line["handled"], line["status"], line["room"] != "") for line in requests
    ]
    assert said == [
        ("/path", "forward", 200, True),
        ("/path", "forward", 200, True),
        ("/held", "hold", 200, True),
    ]
    assert requests[0]["client"] == "127.0.0.1"
    assert requests[0]["bytes"] > 0
    assert "hunter2" not in running.output
    assert ticket not in running.output


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("common", r'127\.0\.0\.1 - - \[[^]]+\] "GET /path HTTP/1\.1" 200 \d+'),
        (
            "combined",
            r'127\.0\.0\.1 - - \[[^]]+\] "GET /path HTTP/1\.1" 200 \d+ "http://a\.example/" "%22 b%0A%22"',
        ),
    ],
)
def test_the_access_log_is_one_that_log_analysers_read_and_logrotate_may_move(
    greenroom, origin, tmp_path, form, line
) -> None:
    path = tmp_path / "access.log"
    log = f'[log]\naccess = "{form}"\naccess_file = "{path}"\n'
    running = greenroom.config(f'origin = "{origin.url}"\n{log}' + ROOM.format(active=1))
    headers = {"Referer": "http://a.example/?secret", "User-Agent": '" b%0A"'}
    running.visitor().get("/path?a=secret", headers=headers)
    greenroom.eventually(lambda: path.exists() and path.read_text(), "the line is written")
    assert re.fullmatch(line, path.read_text().splitlines()[0].replace("%250A", "%0A"))
    path.rename(tmp_path / "access.log.1")
    running.visitor().get("/path")
    greenroom.eventually(lambda: path.exists() and path.read_text(), "a new file is begun")
    assert "secret" not in path.read_text() + (tmp_path / "access.log.1").read_text()


def test_requests_that_cannot_be_read_are_in_the_access_log(greenroom, origin) -> None:
    running = greenroom.config(
        f'origin = "{origin.url}"\n[log]\naccess = "common"\n' + ROOM.format(active=1)
    )
    with socket.create_connection(running.address) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 400 ")
    running.wait_until_printed('"-" 400 ')


def test_queries_are_logged_only_when_asked_for(greenroom, origin) -> None:
    running = greenroom.config(
        f'origin = "{origin.url}"\n[log]\naccess = true\nqueries = true\n' + ROOM.format(active=1)
    )
    running.visitor().get("/path?a=1")
    running.wait_until_printed("/path?a=1")


def test_there_is_no_access_log_unless_asked_for(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 1)
    running.visitor().get("/nowhere-to-be-seen")
    running.stop()
    assert "nowhere-to-be-seen" not in running.output


# -- TLS -------------------------------------------------------------------------------------------


def certificate(folder: Path, name: str) -> bytes:
    """Writes cert.pem and key.pem; gives the certificate as DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    return made.public_bytes(serialization.Encoding.DER)


def shown_certificate(address: tuple[str, int]) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(address) as plain, context.wrap_socket(plain) as secure:
        secure.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert secure.recv(12) == b"HTTP/1.1 200"
        return secure.getpeercert(binary_form=True) or b""


def test_it_serves_over_tls_and_takes_up_a_renewed_certificate(greenroom, origin) -> None:
    first = certificate(greenroom.folder, "first")
    running = greenroom.config(
        f'origin = "{origin.url}"\n[tls]\ncert = "cert.pem"\nkey = "key.pem"\n'
        + ROOM.format(active=50)
    )
    assert "visitors   https://" in running.output
    assert shown_certificate(running.address) == first
    second = certificate(greenroom.folder, "second")
    running.wait_until_printed("config_loaded")
    assert shown_certificate(running.address) == second
