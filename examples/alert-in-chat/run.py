"""The whole example: the shop goes down and comes back, and the chat says so. See README.md."""

import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runner import Example, until

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    """Prints every message of the chat, and how long it took from the end of the shop to the
    message.
    """
    with Example(FOLDER, (9701, 9702, 9703, 9704)) as example:
        chat = example.start(
            sys.executable, str(FOLDER / "chat.py"), str(example.port[9701]), stdout=subprocess.PIPE
        )
        said: list[str] = []

        def listen() -> None:
            for line in chat.stdout or ():
                print(line, end="", flush=True)
                said.append(line)

        threading.Thread(target=listen, daemon=True).start()
        shop = example.shop(9702)
        example.greenroom(9704)
        url = f"http://127.0.0.1:{example.port[9701]}/services/T0/B0/token"
        webhook = example.make(
            "/destinations/webhooks",
            {"name": "Team", "url": url, "greenroom": {"channel": "slack"}},
        )
        example.tell(webhook, "health_check_status_notification")
        example.until_status("healthy")

        shop.kill()
        stopped_s = time.monotonic()
        until(
            lambda: any("is now Unhealthy" in line for line in said),
            "the chat says that the shop is down",
        )
        print(
            f"the chat knew {time.monotonic() - stopped_s:.1f} s after the shop went down (it is"
            " probed every 5 s)"
        )
        example.shop(9702)
        until(
            lambda: any("healthy again" in line for line in said),
            "the chat says that the shop is back",
        )


if __name__ == "__main__":
    main()
