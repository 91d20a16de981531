"""Mail reaches a real mail server that is busy, refuses, wants a login or speaks TLS."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from aiosmtpd.smtp import AuthResult, LoginPassword
from notification_rig import HERE, alert, having, in_a_hurry, now_ms, policy, running
from receivers import MailReceiver
from store_with_outbox import StoreWithOutbox

from greenroom.alerts.delivery import Delivery, DeliveryOutcome
from greenroom.alerts.rules.outbox import Due
from greenroom.config_file.sections import mail_notes
from greenroom.configuration.store import default_url
from greenroom.outbound import Guard
from greenroom.outbound.mail import MailServer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreWithOutbox]:
    found = StoreWithOutbox(default_url(tmp_path))
    yield found
    found.close()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_hurry(monkeypatch)


def test_mail_is_handed_in_and_a_busy_mail_server_is_tried_again(
    store: StoreWithOutbox, hurry
) -> None:
    mail = MailReceiver(lambda number: "451 busy" if number == 0 else "250 OK")
    try:
        having(store, policy(emails=("ann@example.com", "bob@example.com")))
        store.outbox.put([alert(7)], now_ms())
        server = MailServer("127.0.0.1", mail.port, "none", sender="alerts@shop.example")
        running(store, lambda: len(mail.messages) == 2 and store.outbox.waiting() == 0, mail=server)
        found = {to[0]: message for to, message in mail.messages}
        assert set(found) == {"ann@example.com", "bob@example.com"}
        message = found["ann@example.com"]
        assert message["subject"] == "[greenroom] All new visitors are turned away: room 7"
        assert "room 7 turns all new visitors away" in message.get_body(("plain",)).get_content()
        assert "<strong>" in message.get_body(("html",)).get_content()
        assert message["auto-submitted"] == "auto-generated"
        assert message["message-id"] != found["bob@example.com"]["message-id"]
        assert mail.introduced_as == "shop.example", (
            "no name server is asked for the name of this machine"
        )
    finally:
        mail.close()


def test_an_address_that_the_mail_server_refuses_for_good_is_given_up_and_holds_no_one(
    store: StoreWithOutbox, hurry
) -> None:
    mail = MailReceiver(lambda _n: "rcpt 550 no such user")
    try:
        having(store, policy(emails=("gone@example.com",)))
        store.outbox.put([alert(1)], now_ms())
        running(
            store,
            lambda: store.outbox.waiting() == 0,
            mail=MailServer("127.0.0.1", mail.port, "none"),
        )
        (entry,), _ = store.outbox.history(0, None, 0, 5)
        assert "550" in entry.problem
        assert "no such user" in entry.problem
        assert mail.tries == 1
    finally:
        mail.close()


def test_mail_without_a_mail_server_waits_and_says_why(store: StoreWithOutbox, caplog) -> None:
    async def story() -> DeliveryOutcome:
        due = Due(1, alert(1), "p1", "Shop", "", "email:a@example.com", 0, 0)
        return await Delivery(Guard(HERE), now_ms).attempt(due, store.read())

    outcome = asyncio.run(story())
    assert "smtp_host" in outcome.problem
    assert not outcome.permanent


@pytest.mark.filterwarnings(
    "ignore:Requiring AUTH"
)  # where TLS is there from the first byte, the receiver does not see it
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_goes_over_tls_with_a_login_and_not_with_a_wrong_one(
    store: StoreWithOutbox, tmp_path: Path, monkeypatch, security: str, hurry
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def check(
        _server: object, _session: object, _envelope: object, _mechanism: str, given: LoginPassword
    ) -> AuthResult:
        return AuthResult(
            success=(given.login, given.password) == (b"me", b"pass word"), handled=False
        )

    secured = (
        {"tls_context": context, "require_starttls": True}
        if security == "starttls"
        else {"ssl_context": context}
    )
    mail = MailReceiver(
        authenticator=check, auth_required=True, auth_require_tls=security == "starttls", **secured
    )
    try:
        server = MailServer(
            "127.0.0.1", mail.port, security, "me", "pass word", "alerts@shop.example"
        )
        due = Due(1, alert(1), "p1", "Shop", "", "email:ann@example.com", 0, 0)

        def tried(**changed) -> str:
            deliver = Delivery(Guard(HERE), now_ms, replace(server, **changed))
            return asyncio.run(deliver.attempt(due, store.read())).problem

        assert "refused the login: 535" in tried(password="wrong")
        assert tried() == ""
        with monkeypatch.context() as patch:
            patch.setattr(
                "greenroom.outbound.mail.TOTAL_S", 2.0
            )  # both sides wait for the other one's first word
            assert "cannot be used" in tried(
                security="tls" if security == "starttls" else "starttls"
            )
        monkeypatch.delenv("SSL_CERT_FILE")
        assert "certificate" in tried().lower()
        assert [to for to, _ in mail.messages] == [["ann@example.com"]]
    finally:
        mail.close()


def test_the_default_sender_is_not_introduced_as_localhost() -> None:
    assert MailServer("mail.example").introduced_as == socket.gethostname()
    assert MailServer("mail.example", sender="a@shop.example").introduced_as == "shop.example"


def test_check_says_that_the_default_sender_is_refused_by_mail_servers() -> None:
    assert mail_notes(None) == mail_notes(MailServer("m", sender="a@shop.example")) == ()
    (note,) = mail_notes(MailServer("m"))
    assert "notifications.smtp_from: greenroom@localhost" in note
