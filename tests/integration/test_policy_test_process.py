"""The dashboard's test of a policy says what the receivers said."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from api_rig import ACCOUNT, Api, create_token
from installation import PASSWORD, sign_in
from receivers import MailReceiver
from warm_start import output_of

CONFIG = """
origin = "http://127.0.0.1:9"
[notifications]
smtp_host = "127.0.0.1"
smtp_port = {mail}
smtp_security = "none"
"""


@pytest.fixture
def mail() -> Iterator[MailReceiver]:
    found = MailReceiver()
    yield found
    found.close()


class Operator:
    """Signed in to a dashboard whose mail server is `mail`."""

    def __init__(self, greenroom: Any, mail: MailReceiver) -> None:
        running = greenroom.config(CONFIG.format(mail=mail.port))
        account = ("account", "add", "ada", "--role", "admin", "--password-stdin")
        output_of(*account, "--data", str(greenroom.data), stdin=PASSWORD + "\n")
        self.api = Api(running.control, create_token(greenroom.data, "all", "--scope", "edit"))
        self.browser = running.control_visitor()
        self.browser.cookies = sign_in(running, name="ada", password=PASSWORD.replace(" ", "+"))

    def policy(self, mechanisms: dict[str, Any]) -> str:
        document = {"name": "p", "alert_type": "greenroom_event", "mechanisms": mechanisms}
        url = f"/accounts/{ACCOUNT}/alerting/v3/policies"
        return str(self.api.ask("POST", url, document).result["id"])

    def sends_a_test(self, policy: str) -> str:
        """The page that is shown then."""
        page = self.browser.get("/settings").text
        token = re.search(r'name="csrf-token" content="([^"]*)"', page)
        assert token
        head = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://{self.browser.host}",
        }
        form = urlencode({"_csrf": token[1], "step": "test"}).encode()
        answer = self.browser.get(f"/notifications/policies/{policy}/step", "POST", head, form)
        place = answer.headers.get("Location")
        return self.browser.get(place).text if place else answer.text


SAID = {
    "250 OK": ("Every destination took the test.",),
    "rcpt 550 no such user": (
        "Test of ada@example.com: the mail server refused the recipient",
        "550 no such user",
    ),
    "451 busy": ("Test of ada@example.com: it did not take the message, and greenroom tries",),
}


def test_what_the_mail_server_said_is_on_the_page(greenroom, mail: MailReceiver) -> None:
    operator = Operator(greenroom, mail)
    policy = operator.policy({"email": [{"id": "ada@example.com"}]})
    for said, texts in SAID.items():
        mail.answer = lambda _, said=said: said
        page = operator.sends_a_test(policy)
        assert [text for text in texts if text not in page] == [], said
    assert "This policy has no destination." in operator.sends_a_test(operator.policy({}))
