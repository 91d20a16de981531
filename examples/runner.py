"""What the notification examples share: free ports, processes that end with the example, and calls
of greenroom's API.
"""

import json
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

ACCOUNT = "67726565656e726f6f6d000000000001"
GREENROOM = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
PATIENCE_S = 90.0


class Example:
    """Use it in a `with` block: everything it started ends with it."""

    def __init__(self, folder: Path, ports: tuple[int, ...]) -> None:
        """`ports` are those in greenroom.toml of the folder; free ones are taken instead of them."""
        self.folder = folder
        self.data = Path(tempfile.mkdtemp(prefix="greenroom-example-"))
        self.port = dict(zip(ports, _free_ports(len(ports)), strict=True))
        self._undo = ExitStack()
        self.token = ""

    def __enter__(self) -> "Example":
        """Nothing runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends everything."""
        self._undo.close()
        shutil.rmtree(self.data, ignore_errors=True)

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """A process that ends with the example."""
        process = subprocess.Popen(command, text=True, **options)
        self._undo.callback(_end, process)
        return process

    def shop(self, port: int) -> subprocess.Popen[str]:
        """A web server that answers 200, on the port that stands for this one."""
        (self.data / "shop").mkdir(exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            "--directory",
            str(self.data / "shop"),
            str(self.port[port]),
        ]
        return self.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def greenroom(self, control: int) -> None:
        """greenroom with the configuration of the folder, and a token for its API on this control
        port.
        """
        ports = "|".join(str(port) for port in self.port)
        text = re.sub(
            rf"\b({ports})\b",
            lambda found: str(self.port[int(found[0])]),
            (self.folder / "greenroom.toml").read_text(),
        )
        config = self.data / "greenroom.toml"
        config.write_text(text)
        log = self.data / "greenroom.log"
        command = (GREENROOM, "serve", "--config", str(config), "--data", str(self.data / "data"))
        with log.open("w") as lines:
            process = self.start(*command, stdout=lines, stderr=lines)
        self._api = f"http://127.0.0.1:{self.port[control]}"
        until(lambda: _runs(process, log) and _answers(f"{self._api}/readyz"), "greenroom is ready")
        token = [
            GREENROOM,
            "token",
            "create",
            "example",
            "--scope",
            "edit",
            "--data",
            str(self.data / "data"),
        ]
        self.token = subprocess.run(
            token, capture_output=True, text=True, check=True
        ).stdout.strip()

    def make(self, path: str, document: Any) -> str:
        """Makes something through the alerting API; its id."""
        return str(
            self.ask("POST", f"/accounts/{ACCOUNT}/alerting/v3{path}", document)["result"]["id"]
        )

    def tell(self, webhook: str, alert_type: str) -> None:
        """A policy that calls this webhook for every alert of the type."""
        document = {
            "name": "Shop",
            "alert_type": alert_type,
            "enabled": True,
            "mechanisms": {"webhooks": [{"id": webhook}]},
        }
        self.make("/policies", document)

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        """The answer of greenroom's API."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{self._api}/client/v4{path}", body, headers, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def until_status(self, wanted: str) -> None:
        """Waits until the health check of the example has this status."""

        def status() -> str:
            zones = self.ask("GET", "/zones")["result"]
            checks = [
                check
                for zone in zones
                for check in self.ask("GET", f"/zones/{zone['id']}/healthchecks")["result"]
            ]
            return str(checks[0]["status"])

        until(lambda: status() == wanted, f"the shop is {wanted}")


def until(done: Callable[[], Any], what: str) -> None:
    """Waits for something, and gives up after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _runs(process: subprocess.Popen[str], log: Path) -> bool:
    """Gives up with the last lines of the log when the process has ended."""
    if process.poll() is None:
        return True
    raise SystemExit(
        f"greenroom ended with status {process.returncode}:\n{log.read_text()[-2000:]}"
    )


def _free_ports(count: int) -> list[int]:
    """Different ports below those that systems give to outgoing connections, so that none is taken
    before its server listens.
    """
    found: list[int] = []
    for port in random.sample(range(20000, 32000), 1000):
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise SystemExit("no free ports between 20000 and 32000")


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
