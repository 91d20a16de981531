"""How long a webhook takes after an origin has died, and after the sender has died: real processes,
up to the delivered message.

    .venv/bin/python bench/alert_delay.py [--checks 40] [--rounds 3]

greenroom runs as `greenroom serve`, the origin as a process that is killed, the receiver of the
webhook in a third one's place: here. Every check has an interval of 10 s and its own place in it,
so each round gives as many measurements as there are checks. The time since the deciding probe is
taken from greenroom's event log; a probe of a dead origin on this machine is refused at once.

Then two greenrooms share a store, and the one that sends is killed in the middle of a message: how
soon the other one sends it.
"""

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from greenroom.health.rules.memory import EventQuestion
from greenroom.health.store import HealthStore, default_url

GREENROOM = Path(sys.executable).with_name("greenroom")
ACCOUNT = "67726565656e726f6f6d000000000001"
AIM_S, AIM_AFTER_PROBE_S = 11.0, 1.0
AIM_TAKEOVER_S = 5.0
ORIGIN = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
Server(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""


class Receiver:
    """Takes webhooks; (check, state) -> when it came, as Unix seconds."""

    def __init__(self) -> None:
        self.came: dict[tuple[str, str], float] = {}
        self.hung = threading.Event()
        self.hang = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                at_s = time.time()
                if receiver.hang:
                    receiver.hung.set()
                    time.sleep(20)  # longer than a sender waits
                    return
                if document.get("alert_correlation_id", "").startswith("test-"):
                    receiver.came[document["alert_correlation_id"], "test"] = at_s
                elif "data" in document:
                    receiver.came[
                        document["data"]["health_check_name"], document["alert_event"]
                    ] = at_s
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count: int, event: str, within_s: float) -> None:
        end = time.monotonic() + within_s
        while sum(kind == event for _, kind in self.came) < count:
            if time.monotonic() > end:
                raise SystemExit(
                    f"only {sum(kind == event for _, kind in self.came)} of {count} webhooks came"
                    f" within {within_s:.0f} s"
                )
            time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def origin(port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", ORIGIN, str(port)])


def config(checks: int, port: int) -> str:
    tables = "".join(
        f'[[health_checks]]\nname = "check-{number}"\naddress = "127.0.0.1"\ninterval ='
        f" 10\nhttp_config = {{ port = {port} }}\n"
        for number in range(checks)
    )
    room = (
        '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 10\nnew_users_per_minute ='
        f" 10\n{tables}"
    )
    return (
        f'origin = "http://127.0.0.1:{port}"\n[outbound]\nports = []\nallow = ["127.0.0.1"]\n{room}'
    )


def ask(url: str, token: str, document: Any = None) -> Any:
    body = None if document is None else json.dumps(document).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
        return json.load(answer)


def healthy(control: str) -> int:
    return sum(
        check["status"] == "healthy"
        for check in ask(f"http://{control}/status", "")["health_checks"]
    )


def subscribe(control: str, token: str, url: str) -> None:
    at = f"http://{control}/client/v4/accounts/{ACCOUNT}/alerting/v3"
    hook = ask(f"{at}/destinations/webhooks", token, {"name": "bench", "url": url})["result"]["id"]
    wanted = {"name": "down", "enabled": True, "alert_type": "health_check_status_notification"}
    ask(f"{at}/policies", token, {**wanted, "mechanisms": {"webhooks": [{"id": hook}]}})


def deciding(data: Path, since_ms: int) -> dict[str, float]:
    """Check -> when the probe that decided its failure began, as Unix seconds."""
    store = HealthStore(default_url(data))
    try:
        found = store.events(EventQuestion(since_ms, since_ms + 600_000, only_changes=True))
    finally:
        store.close()
    return {event.name: event.at_ms / 1000 for event in found if not event.healthy}


def rounds(folder: Path, checks: int, count: int) -> tuple[list[float], list[float]]:
    receiver, port, listen, control = (
        Receiver(),
        free_port(),
        f"127.0.0.1:{free_port()}",
        f"127.0.0.1:{free_port()}",
    )
    (folder / "greenroom.toml").write_text(config(checks, port))
    data = folder / "data"
    server = origin(port)
    command = [
        GREENROOM,
        "serve",
        "--listen",
        listen,
        "--control",
        control,
        "--data",
        data,
        "--config",
        folder / "greenroom.toml",
    ]
    greenroom = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    after_failure, after_probe = [], []
    try:
        until(lambda: healthy(control) == checks)
        made = subprocess.run(
            [GREENROOM, "token", "create", "bench", "--scope", "edit", "--data", data],
            capture_output=True,
            text=True,
            check=True,
        )
        subscribe(control, made.stdout.strip(), receiver.url)
        for _ in range(count):
            time.sleep(10 + 10 * random.random())
            receiver.came.clear()
            failed_s = time.time()
            server.kill()
            server.wait()
            receiver.wait(checks, "ALERT_STATE_EVENT_START", 60)
            time.sleep(2)  # the event log is written once a second
            probes = deciding(data, int(failed_s * 1000) - 1_000)
            for (name, event), came_s in receiver.came.items():
                if event == "ALERT_STATE_EVENT_START":
                    after_failure.append(came_s - failed_s)
                    after_probe.append(came_s - probes[name])
            server = origin(port)
            until(lambda: healthy(control) == checks)
    finally:
        greenroom.send_signal(signal.SIGTERM)
        greenroom.wait(30)
        server.kill()
        server.wait()
    return after_failure, after_probe


def takeovers(folder: Path, count: int) -> list[float]:
    """Seconds from the death of a sender to the delivery of its message by the other one."""
    receiver, found = Receiver(), []
    (folder / "greenroom.toml").write_text(config(0, 9))
    controls = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    running = [shared(folder, number, control) for number, control in enumerate(controls)]
    try:
        until(lambda: all(ready(control) for control in controls))
        command = [
            GREENROOM,
            "token",
            "create",
            "bench",
            "--scope",
            "edit",
            "--store",
            store(folder),
        ]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        at = f"http://{controls[0]}/client/v4/accounts/{ACCOUNT}/alerting/v3"
        hook = ask(f"{at}/destinations/webhooks", token, {"name": "bench", "url": receiver.url})[
            "result"
        ]["id"]
        wanted = {
            "name": "p",
            "enabled": True,
            "alert_type": "greenroom_rejecting",
            "mechanisms": {"webhooks": [{"id": hook}]},
        }
        policy = ask(f"{at}/policies", token, wanted)["result"]["id"]
        for _ in range(count):
            receiver.hang = True
            receiver.hung.clear()
            receiver.came.clear()
            victim = random.randrange(2)
            other = controls[1 - victim].rpartition(":")[2]
            # The process that was asked sends: it hears of its own alert at once, the other one
            # half a second later.
            ask(
                f"http://{controls[victim]}/client/v4/accounts/{ACCOUNT}/alerting/v3/policies/{policy}/test",
                token,
                {},
            )
            receiver.hung.wait(10)
            running[victim].kill()
            running[victim].wait()
            receiver.hang, killed_s = False, time.time()
            receiver.wait(1, "test", 60)
            found.append(next(iter(receiver.came.values())) - killed_s)
            print(f"  taken over by {other} after {found[-1]:.2f} s", flush=True)
            running[victim] = shared(folder, victim, controls[victim])
            until(lambda control=controls[victim]: ready(control))
            time.sleep(3)  # the lease is given back when nothing is to be sent
    finally:
        for process in running:
            process.kill()
            process.wait()
    return found


def store(folder: Path) -> str:
    return f"sqlite:///{folder / 'shared.db'}"


def shared(folder: Path, number: int, control: str) -> subprocess.Popen[bytes]:
    """One of several greenrooms with ledgers of their own and one store."""
    places = [
        "--listen",
        "127.0.0.1:0",
        "--control",
        control,
        "--data",
        folder / str(number),
        "--store",
        store(folder),
    ]
    command = [GREENROOM, "serve", "--config", folder / "greenroom.toml", *places]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def ready(control: str) -> bool:
    return bool(ask(f"http://{control}/status", ""))


def until(true: Any, within_s: float = 90.0) -> None:
    end = time.monotonic() + within_s
    while True:
        try:
            if true():
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise SystemExit("greenroom did not see the origin in time")
        time.sleep(0.2)


def say(label: str, found: list[float], aim_s: float) -> None:
    found, median = sorted(found), statistics.median(found)
    mark = "" if median <= aim_s else "   MISSED"
    slow = found[int(len(found) * 0.95)]
    print(
        f"{label:32} median {median:6.2f} s   95 % within {slow:6.2f} s   slowest {found[-1]:6.2f}"
        f" s   aim for the median {aim_s} s{mark}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        after_failure, after_probe = rounds(Path(folder), wanted.checks, wanted.rounds)
    with tempfile.TemporaryDirectory() as folder:
        taken_over = takeovers(Path(folder), wanted.rounds)
    print(
        f"{wanted.checks} checks, interval 10 s, {wanted.rounds} failures, {len(after_failure)}"
        f" webhooks; load {os.getloadavg()[0]:.1f}"
    )
    say("failure to delivered webhook", after_failure, AIM_S)
    say("deciding probe to webhook", after_probe, AIM_AFTER_PROBE_S)
    say("killed sender to webhook", taken_over, AIM_TAKEOVER_S)


if __name__ == "__main__":
    main()
