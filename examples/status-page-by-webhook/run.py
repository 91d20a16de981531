"""The whole example: a status page that greenroom keeps up to date, and that believes no one else.
See README.md.
"""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runner import Example, until

FOLDER = Path(__file__).resolve().parent


def page(url: str) -> str:
    """What the status page says; empty while it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def forged(url: str) -> int:
    """The status that a message with a wrong secret gets."""
    body = json.dumps(
        {"text": "All is well", "data": {"name": "shop", "status": "Healthy", "reason": "forged"}}
    ).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}webhook", body, {"cf-webhook-auth": "guess"}), timeout=5
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def main() -> None:
    """Prints what the page says after each change."""
    secret = str(uuid.uuid4())
    with Example(FOLDER, (9711, 9712, 9713, 9714)) as example:
        url = f"http://127.0.0.1:{example.port[9711]}/"
        example.start(
            sys.executable,
            str(FOLDER / "status_page.py"),
            str(example.port[9711]),
            env={**os.environ, "WEBHOOK_SECRET": secret},
        )
        until(lambda: page(url), "the status page answers")
        shop = example.shop(9712)
        example.greenroom(9714)
        webhook = example.make(
            "/destinations/webhooks",
            {"name": "Status page", "url": f"{url}webhook", "secret": secret},
        )
        example.tell(webhook, "health_check_status_notification")
        example.until_status("healthy")

        shop.kill()
        until(
            lambda: "<td>shop<td>Unhealthy<td>TCP connection failed" in page(url),
            "the page says that the shop is down",
        )
        print("shop: Unhealthy, TCP connection failed")
        print(f"a forged message is answered {forged(url)}")
        assert "forged" not in page(url)
        example.shop(9712)
        until(
            lambda: "<td>shop<td>Healthy<td>No failures" in page(url),
            "the page says that the shop is back",
        )
        print("shop: Healthy, No failures")


if __name__ == "__main__":
    main()
