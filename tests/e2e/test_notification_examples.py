"""The examples of notifications run from end to end, as their READMEs say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name / "run.py")],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_alert_reaches_a_chat_that_speaks_slacks_format() -> None:
    said = run("alert-in-chat")
    assert "# alerts: Hello World!" in said
    assert "Health check shop is now Unhealthy: TCP connection failed." in said
    assert "shop is healthy again" in said
    assert said.index("Unhealthy") < said.index("healthy again")


def test_a_status_page_is_fed_by_webhooks_and_believes_no_one_else() -> None:
    assert run("status-page-by-webhook").splitlines() == [
        "shop: Unhealthy, TCP connection failed",
        "a forged message is answered 401",
        "shop: Healthy, No failures",
    ]
