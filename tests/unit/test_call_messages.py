"""The mail of a call as the mail server gets it."""

from aiosmtplib.email import flatten_message

from greenroom.calls.messages import LINK_MAX, CallMessage, mail_of
from greenroom.outbound.mail import MailServer

SERVER = MailServer("127.0.0.1", sender="line@shop.example")


def headers(stop: str) -> list[bytes]:
    url = "https://shop.example/"
    made = CallMessage("confirm", "Shop: title", "body", url, stop, "no", "en-US", "ltr")
    sent = flatten_message(mail_of(made, SERVER, "ann@mail.example", 1_750_000_000_000, "n"))
    return sent.partition(b"\r\n\r\n")[0].split(b"\r\n")


def test_a_mail_program_reads_the_link_that_refuses() -> None:
    stop = "https://shop.example/tickets?greenroom=call." + "x" * 108 + ".stop"
    assert f"List-Unsubscribe: <{stop}>".encode() in headers(stop)
    longest = "https://shop.example/" + "x" * (LINK_MAX - 21)
    assert max(map(len, headers(longest))) <= 998
    assert not any(b"List-Unsubscribe" in line for line in headers(longest + "x"))
