"""Which forms of held visitors are kept, and that what a browser sends from the waiting page is
what it sent at first.
"""

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.decision.render import render
from greenroom.decision.verdict import Hold
from greenroom.model.answer import Answer
from greenroom.model.room import LANGUAGES, Room
from greenroom.model.visit import Arrival, Held
from greenroom.pages import Page, compile_page
from greenroom.pages.builtin import FORM_GOES_BEFORE
from greenroom.pages.form_on_page import FORM_HTML_MAX, FORM_ID
from greenroom.request.form_replay import (
    FIELDS_MAX,
    FORM_BYTES_MAX,
    FormField,
    KeptForm,
    form_of,
    may_keep_form,
)

URLENCODED = b"application/x-www-form-urlencoded"
SAME = ((b"sec-fetch-mode", b"navigate"), (b"sec-fetch-site", b"same-origin"))
OLD = ((b"accept", b"text/html"), (b"origin", b"http://shop.example"))
LIMITS = {
    "name": "shop",
    "host": "shop.example",
    "total_active_users": 1,
    "new_users_per_minute": 1,
}
PAGE = compile_page(Room(**LIMITS))
OWN = compile_page(Room(**LIMITS, custom_page_html="<body><h1>Wait</h1></body>"))
WAITING = Held(
    1_790_000_000_000,
    "fifo",
    1_790_000_000_000,
    20,
    20,
    position=3,
    ahead=2,
    waiting=9,
    in_line=True,
)
CLOSED = Held(1_790_000_000_000, "reject", 1_790_000_000_000, 0)


def post(
    *headers: tuple[bytes, bytes],
    kind: bytes = URLENCODED,
    method: str = "POST",
    scheme: str = "http",
) -> Arrival:
    sent = (*headers, (b"host", b"shop.example"), (b"content-type", kind))
    return Arrival(method, scheme, "shop.example", "/order", "", sent, "192.0.2.1")


def answer(
    arrival: Arrival, body: bytes | None, held: Held = WAITING, page: Page = PAGE, status: int = 200
) -> Answer:
    return render(Hold("room", page, status, False, False, held), arrival, body)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (post(*SAME), True),
        (post(*OLD), True),
        (post(*OLD, kind=b"application/x-www-form-urlencoded; charset=UTF-8"), True),
        (post(*OLD, kind=b"Multipart/Form-Data; boundary=----a1"), True),
        (post(SAME[0], (b"sec-fetch-site", b"same-site")), False),
        (post(SAME[0], (b"sec-fetch-site", b"cross-site")), False),
        (post(SAME[0], (b"sec-fetch-site", b"none")), False),
        (post(SAME[0], (b"sec-fetch-site", b"cross-site"), OLD[1]), False),
        (post(OLD[0]), False),
        (post(OLD[0], (b"origin", b"null")), False),
        (post(OLD[0], (b"origin", b"http://shop.example.evil")), False),
        (post(OLD[0], (b"origin", b"http://evil/?http://shop.example")), False),
        (post(*OLD, scheme="https"), False),
        (post(OLD[0], (b"origin", b"https://shop.example"), scheme="https"), True),
        (post((b"sec-fetch-mode", b"cors"), (b"sec-fetch-dest", b"empty"), SAME[1]), False),
        (post(*SAME, method="GET"), False),
        (post(*SAME, method="PUT"), False),
        (post(*SAME, (b"content-encoding", b"gzip")), False),
        (post(*SAME, kind=b"text/plain"), False),
        (post(*SAME, kind=b"application/json"), False),
        (post(*SAME, kind=URLENCODED + b"; charset=shift_jis"), False),
        (post(*SAME, kind=b"multipart/form-data"), False),
        (post(*SAME, kind=b"multipart/form-data; boundary=" + b"a" * 71), False),
    ],
)
def test_only_a_form_of_the_same_origin_may_be_kept(sent: Arrival, kept: bool) -> None:
    assert may_keep_form(sent) == kept
    assert (b"id=kept" in answer(sent, b"" if b"multipart" not in dict(sent.headers)[b"content-type"].lower() else b"------a1--")
            .body) == kept  # fmt: skip


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=20)
LINES = st.lists(TEXTS, max_size=3).map("\r\n".join)
FIELDS = st.lists(
    st.tuples(TEXTS.filter(lambda name: name and name.lower() != "_charset_"), LINES), max_size=6
)


class Form(HTMLParser):
    """What a browser would send from this page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.how: dict[str, str | None] = {}
        self.fields: list[FormField] = []
        self.inside = False
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "form" and found.get("id") in ("kept", FORM_ID):
            self.how, self.inside = found, True
        elif tag == "input" and self.inside:
            self.fields.append(
                FormField(found["name"] or "", found.get("value") or "", found["type"] == "file")
            )

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "form"


def read(page: bytes) -> Form:
    """The page as a browser reads it, which makes LF of CRLF before anything else."""
    return Form(page.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


@pytest.mark.parametrize("page", [PAGE, OWN], ids=["built-in", "own"])
@given(FIELDS)
def test_the_page_sends_exactly_what_was_sent(page: Page, fields: list[tuple[str, str]]) -> None:
    form = read(answer(post(*SAME), urlencode(fields).encode(), page=page).body)
    assert [(field.name, field.value) for field in form.fields] == fields
    assert form.how["method"] == "post"
    assert "action" not in form.how
    assert "enctype" not in form.how


def multipart(fields: list[tuple[str, str]], boundary: str = "----a1", more: str = "") -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    ]
    return f"{''.join(parts)}{more}--{boundary}--\r\n".encode()


NO_FILE = '------a1\r\nContent-Disposition: form-data; name="photo"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n'


@given(
    FIELDS.filter(
        lambda fields: (
            not any(set(name) & {'"', "\\"} or "----a1" in value for name, value in fields)
        )
    )
)
def test_the_same_as_multipart_with_a_field_for_a_file(fields: list[tuple[str, str]]) -> None:
    form = read(
        answer(
            post(*SAME, kind=b"multipart/form-data; boundary=----a1"),
            multipart(fields, more=NO_FILE),
        ).body
    )
    assert form.fields == [
        *[FormField(name, value) for name, value in fields],
        FormField("photo", "", True),
    ]
    assert form.how["enctype"] == "multipart/form-data"


@given(st.binary(max_size=200))
def test_any_body_gives_a_page_with_the_form_or_without_it(body: bytes) -> None:
    for kind in (URLENCODED, b"multipart/form-data; boundary=a"):
        said = answer(post(*SAME, kind=kind), body).body
        assert (b"id=kept" in said) != (b"id=lost" in said)
        assert said.count(b"<form") == said.count(b"</form>")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (URLENCODED, b"a=" + b"x" * FORM_BYTES_MAX),
        (URLENCODED, b"a=" + b'"' * (FORM_HTML_MAX // 6 + 1)),
        (URLENCODED, b"&".join([b"a"] * (FIELDS_MAX + 1))),
        (URLENCODED, b"=nameless"),
        (URLENCODED, b"_CHARSET_=latin-1"),
        (URLENCODED, b"a=%00"),
        (URLENCODED, b"a=%FF"),
        (URLENCODED, b"a=1%0A2"),
        (URLENCODED, b"a=1%0D2"),
        (b"multipart/form-data; boundary=a", b"--a--\r\nmore"),
        (b"multipart/form-data; boundary=a", b"x--a--\r\n"),
        (b"multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n1\r\n--a--\r\n'),
        (b"multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="f"\r\nContent-Type: text/plain\r\n\r\n1\r\n--a--\r\n'),
        (b"multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="f"\r\n\r\n1\r\n'),
        (b"multipart/form-data; boundary=a", b"--a\r\n\r\n1\r\n--a--\r\n"),
    ],
)  # fmt: skip
def test_what_cannot_come_out_as_it_went_in_is_not_kept_and_the_page_says_so(
    kind: bytes, body: bytes
) -> None:
    assert (
        form_of(post(*SAME, kind=kind), body[:FORM_BYTES_MAX]) is None
        or len(body) > FORM_BYTES_MAX
        or b'"' in body
    )
    said = answer(post(*SAME, kind=kind), body)
    assert b"id=lost" in said.body
    assert said.headers.get(b"Refresh") == b"20"


def test_the_longest_honest_form_is_kept() -> None:
    body = urlencode([("text", "x" * (FORM_BYTES_MAX - 5))]).encode()
    assert len(body) == FORM_BYTES_MAX
    assert b"id=kept" in answer(post(*SAME), body).body
    assert b"id=kept" in answer(post(*SAME), b"&".join([b"a=1"] * FIELDS_MAX)).body


def test_a_page_with_a_form_never_refreshes_but_says_when_to_retry() -> None:
    kept, lost = answer(post(*SAME), b"a=1"), answer(post(*SAME), None)
    assert (kept.headers.get(b"Refresh"), lost.headers.get(b"Refresh")) == (None, b"20")
    busy = answer(post(*SAME), b"a=1", status=503)
    assert (busy.status, busy.headers.get(b"Refresh"), busy.headers.get(b"Retry-After")) == (
        503,
        None,
        b"20",
    )
    for said in (kept, lost, busy):
        assert b"no-store" in (said.headers.get(b"Cache-Control") or b"")
        assert said.headers.get(b"Content-Encoding") is None


def test_a_form_without_a_field_is_kept_too() -> None:
    assert b"id=kept" in answer(post(*SAME), b"").body


def test_hostile_fields_stay_fields_and_only_a_page_with_a_form_may_lead_elsewhere() -> None:
    evil = [
        ("submit", "1"),
        ('"><script>alert(1)</script>', "</form><form action=//evil>"),
        ("id", "kept"),
        ("action", "javascript:1"),
    ]
    said = answer(post(*SAME), urlencode(evil).encode())
    policy = (said.headers.get(b"Content-Security-Policy") or b"").decode()
    assert len(re.findall(rb"<script", said.body)) == 2, "that of the page and that of the form"
    assert said.body.count(b"<form") == 2, "the form and that for leaving"
    assert "form-action http: https:" in policy
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 4
    assert read(said.body).fields == [FormField(*pair) for pair in evil]
    lost = (answer(post(*SAME), None).headers.get(b"Content-Security-Policy") or b"").decode()
    assert "form-action 'self'" in lost


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_language_has_the_place_and_the_words(tag: str) -> None:
    page = compile_page(Room(**LIMITS, default_template_language=tag))
    for held in (WAITING, CLOSED):
        assert page.html(held).count(FORM_GOES_BEFORE) == 1
        said = page.after_form(held, KeptForm((FormField("a", "b"),), False))[1].decode()
        assert ("<noscript>" in said) is (held is WAITING)
        assert len(set(re.findall(r"<(?:p|button)>([^<]{4,})<", unescape(said)))) >= 2


def test_a_page_of_the_operators_own_gets_the_form_at_its_end_and_sends_it_when_it_would_refresh() -> (
    None
):
    said = answer(post(*SAME), b"a=1", page=OWN)
    assert said.body.startswith(b"<body><h1>Wait</h1><form")
    assert said.body.endswith(b",20000)</script></body>")
    assert said.headers.get(b"Refresh") is None
    lost = answer(post(*SAME), None, page=OWN)
    assert f'<p id="{FORM_ID}">'.encode() in lost.body
    assert lost.headers.get(b"Refresh") == b"20"


def test_a_form_of_another_site_that_has_no_place_is_told_so_too() -> None:
    held = render(
        Hold("room", PAGE, 200, False, False), post(SAME[0], (b"sec-fetch-site", b"cross-site"))
    )
    assert (held.status, b"was not kept" in held.body) == (503, True)


def test_urlencoded_pairs_are_read_as_browsers_write_them() -> None:
    body = b"a=1+2%2B3&b&c=&d=%E2%82%AC&&e==="
    form = form_of(post(*SAME), body)
    assert form is not None
    assert [(field.name, field.value) for field in form.fields] == parse_qsl(
        body.decode(), keep_blank_values=True
    )
