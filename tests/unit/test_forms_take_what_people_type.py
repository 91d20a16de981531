"""Forms take pasted addresses and lists as people write them, and messages name no key of the
API.
"""

import pytest

from greenroom.web.pages.forms import Faults, host_and_path, places, several
from greenroom.web.refusals import ApiFault, Code


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shop.example.com", ("shop.example.com", "")),
        (" Shop.Example.com/Sale/Now ", ("shop.example.com", "/Sale/Now")),
        ("https://shop.example.com/sale?utm=mail#top", ("shop.example.com", "/sale")),
        ("http://ada:secret@shop.example.com:8080/", ("shop.example.com:8080", "/")),
        ("", ("", "")),
        ("*.example.com", ("*.example.com", "")),
    ],
)
def test_a_pasted_url_is_a_host_and_a_path(text: str, found: tuple[str, str]) -> None:
    assert host_and_path(text) == found


def test_lists_are_separated_as_people_do() -> None:
    assert several("a@x.example, b@x.example;c@x.example\n d@x.example ,") == [
        f"{name}@x.example" for name in "abcd"
    ]
    assert places("a.example/x,y, b.example\nc.example;") == [
        "a.example/x,y",
        "b.example",
        "c.example",
    ]


def test_messages_of_forms_name_no_key() -> None:
    wrong = [
        ApiFault(Code.INVALID, "shuffle_at_event_start: needs prequeue_start_time", "/shuffle"),
        ApiFault(Code.INVALID, "session_duration: must be my_own, not 3", "/session_duration"),
    ]
    faults = Faults(wrong, {"prequeue_start_time": "Pre-queue opens"})
    assert faults.take("shuffle") == ("“shuffle at event start”: needs “Pre-queue opens”",)
    assert faults.general == ["Session duration: must be my_own, not 3"]
