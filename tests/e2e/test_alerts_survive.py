"""A whole greenroom, killed again and again, and receivers that fail, hang, refuse and come back:
every alert arrives, in order.

Twenty alerts go to one webhook and one e-mail address. What arrives twice (it was delivered, and
the process died before it had written that down) carries the same id.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from api_rig import ACCOUNT, Api, create_token
from receivers import MailReceiver, WebReceiver

COUNT = 20
ALERTING = f"/accounts/{ACCOUNT}/alerting/v3"
CONFIG = """
origin = "http://127.0.0.1:9"
[outbound]
ports = []
allow = ["127.0.0.1"]
[notifications]
smtp_host = "127.0.0.1"
smtp_port = {mail}
smtp_security = "none"
webhook_test = "off"
[[rooms]]
name = "main"
host = "*"
total_active_users = 10
new_users_per_minute = 10
"""


class Receivers:
    """A webhook server and a mail server; both may be gone for a while and come back on their
    ports.
    """

    def __init__(self) -> None:
        self.web = WebReceiver(
            lambda number: 200 if 3 <= number < 9 else (500, 429, "close")[number % 3]
        )
        self.mail = MailReceiver(
            lambda number: (
                "250 OK" if 2 <= number < 8 else ("451 busy", "rcpt 450 later")[number % 2]
            )
        )
        self.hooked: list[Any] = []
        self.mailed: list[Any] = []
        self.there = True

    def hang(self) -> None:
        self.web.behave = lambda _number: "hang"
        self.mail.answer = lambda _number: "hang"

    def gone(self) -> None:
        self.hooked += self.web.taken
        self.mailed += self.mail.messages
        self.web.close()
        self.mail.close()
        self.there = False

    def back(self) -> None:
        self.web = WebReceiver(port=self.web.port)
        self.mail = MailReceiver(port=self.mail.port)
        self.there = True


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    found = Receivers()
    yield found
    if found.there:
        found.gone()


def test_nothing_is_lost_over_kills_and_failing_receivers(greenroom, receivers: Receivers) -> None:
    def start() -> Api:
        running = greenroom.config(CONFIG.format(mail=receivers.mail.port))
        return Api(running.control, token())

    secrets: list[str] = []

    def token() -> str:
        if not secrets:
            secrets.append(create_token(greenroom.data, "operator", "--scope", "edit"))
        return secrets[0]

    until: Callable[..., Any] = greenroom.eventually
    api = start()
    hook = api.ask(
        "POST", f"{ALERTING}/destinations/webhooks", {"name": "w", "url": receivers.web.url}
    ).result["id"]
    mechanisms = {"webhooks": [{"id": hook}], "email": [{"id": "ann@example.com"}]}
    wanted = {"enabled": True, "alert_type": "greenroom_rejecting", "mechanisms": mechanisms}
    for number in range(COUNT):
        made = api.ask("POST", f"{ALERTING}/policies", {**wanted, "name": f"p{number}"}).result[
            "id"
        ]
        assert api.ask("POST", f"{ALERTING}/policies/{made}/test").status == 200

    until(
        lambda: len(receivers.web.taken) == len(receivers.mail.messages) == 6,
        "some have arrived after failures",
        90,
    )
    receivers.hang()
    before = len(receivers.web.requests), receivers.mail.tries
    until(
        lambda: len(receivers.web.requests) > before[0] and receivers.mail.tries > before[1],
        "both hang",
        60,
    )
    greenroom.processes[-1].kill()

    receivers.gone()
    api = start()
    until(
        lambda: api.ask("GET", f"{ALERTING}/destinations/webhooks/{hook}").result["last_failure"],
        "a refused connection",
        60,
    )
    greenroom.processes[-1].kill()

    receivers.back()
    api = start()
    until(lambda: len(receivers.web.taken) >= 2, "it goes on", 90)
    greenroom.processes[-1].kill()
    api = start()
    until(lambda: history(api)["waiting"] == 0, "all are delivered", 90)
    receivers.gone()

    names = [f"p{number}" for number in range(COUNT)]
    hooked = [(body["policy_name"], body["alert_correlation_id"]) for body in receivers.hooked]
    assert list(dict.fromkeys(name for name, _ in hooked)) == names, "all of them, in order"
    assert len(set(hooked)) == COUNT, "what came twice has the same id"
    assert [name for name, _ in itertools.groupby(name for name, _ in hooked)] == names, (
        "and came twice in a row"
    )
    mailed = [message["message-id"] for _, message in receivers.mailed]
    assert len(set(mailed)) == COUNT
    found = [
        message.get_body(("plain",)).get_content().rpartition("Policy: ")[2].strip()
        for _, message in receivers.mailed
    ]
    assert [name for name, _ in itertools.groupby(found)] == names
    told = history(api)["entries"]
    assert len(told) == 2 * COUNT
    assert len({(entry["policy_id"], entry["mechanism_type"]) for entry in told}) == 2 * COUNT


def history(api: Api) -> dict[str, Any]:
    answer = api.ask("GET", f"{ALERTING}/history?per_page=1000")
    return {"entries": answer.result, "waiting": len(answer.body["messages"])}
