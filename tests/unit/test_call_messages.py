"""The mail of a call as the mail server gets it."""

import re

from aiosmtplib.email import flatten_message

from greenroom.calls.messages import LINK_MAX, CallMessage, mail_of, message
from greenroom.model.call import EMAIL, SOON, VisitorCall
from greenroom.model.room import LANGUAGES
from greenroom.model.visit import Estimate
from greenroom.outbound.mail import MailServer
from greenroom.pages.brand import NO_BRAND
from greenroom.pages.builtin import hash_of
from greenroom.pages.call_page import call_page, call_page_headers
from greenroom.pages.language import language
from greenroom.pages.page import BUILT_IN_HEADERS

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


def test_before_a_draw_every_language_says_when_it_starts_and_that_one_has_to_be_there() -> None:
    for tag in LANGUAGES:
        words, left = language(tag), Estimate(599.0, 599.0, 599.0)
        call = VisitorCall(EMAIL, "ann@mail.example", 7, 1, tag, "https://shop.example/", 600_000)
        made = message(SOON, call, NO_BRAND, "shop.example", "u", "s", left, 10, (), True)
        assert made.title == f"shop.example: {words.views['shuffle']['heading']}"
        assert words.time(10) in made.body
        assert made.body.endswith(words.views["shuffle"]["lead"])
        assert "{" not in made.body
        later = message(SOON, call, NO_BRAND, "shop.example", "u", "s", left, 10, (), False)
        assert later.title == f"shop.example: {words.call['soon']}"


def test_the_page_that_offers_messages_counts_in_the_digits_of_its_reader() -> None:
    lead = call_page("ar-EG", NO_BRAND, 10, "", False, "", "", False).partition(b"<section>")[0]
    assert "١٠" in lead.decode()


def test_the_policy_of_that_page_names_each_of_its_styles() -> None:
    page = call_page("en-US", NO_BRAND, 10, "", True, "", "", False).decode()
    policy = call_page_headers(BUILT_IN_HEADERS, NO_BRAND).get(b"Content-Security-Policy")
    styles = re.findall("<style>(.*?)</style>", page)
    assert len(styles) == 2
    assert all(hash_of(style).encode() in (policy or b"") for style in styles)
