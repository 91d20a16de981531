"""The canonical form of a target, by the examples that the documentation shows and by the edges it
does not.
"""

import re
from pathlib import Path

import pytest

from greenroom.request.canonical import (
    TARGET_MAX,
    Refusal,
    Target,
    canonical_target,
    matching_path,
)

PAGE = (Path(__file__).parents[2] / "docs/explanation/request-canonical-form.md").read_text()


def examples():
    """(asked for, becomes) of the page's two tables; refused is None."""
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in PAGE.splitlines() if line.startswith("| `/")
    ]
    for row in rows:
        asked = [text.replace("\\|", "|") for text in re.findall(r"`([^`]*)`", row[0])]
        becomes = re.findall(r"`([^`]*)`", row[1]) if len(row) == 3 else []
        yield from ((text, becomes[0] if becomes else None) for text in asked)


def text_of(target):
    assert isinstance(target, Target), target
    return f"{target.path}?{target.query}" if target.query else target.path


@pytest.mark.parametrize(("asked", "becomes"), list(examples()))
def test_the_documentation_tells_the_truth(asked, becomes):
    found = canonical_target(asked.encode())
    if becomes is None:
        assert isinstance(found, Refusal)
        assert found.status == 400
    else:
        assert text_of(found) == becomes
        assert found.raw == becomes.encode()


def test_the_documentation_has_examples_of_both_kinds():
    shown = list(examples())
    assert len([1 for _, becomes in shown if becomes]) >= 15
    assert len([1 for _, becomes in shown if becomes is None]) >= 25


@pytest.mark.parametrize(
    "value", [*range(0x21), 0x7F, ord("#"), ord("\\"), *range(0x80, 0x100, 13)]
)
def test_a_byte_that_no_url_contains_is_refused_wherever_it_stands(value):
    for raw in (b"/a%cb", b"%c/a", b"/a/%c", b"/%%41%c"):
        assert isinstance(
            canonical_target(raw.replace(b"%c", bytes([value])).replace(b"%%", b"%")), Refusal
        )


@pytest.mark.parametrize("value", [*range(0x20), ord("#"), 0x7F, 0x80, 0xFF])
def test_so_is_it_in_a_query(value):
    assert isinstance(canonical_target(b"/a?b" + bytes([value])), Refusal)


@pytest.mark.parametrize("value", [*range(0x20), 0x7F, ord("/"), ord("\\"), ord(";"), 0x80, 0xFF])
@pytest.mark.parametrize("form", [b"/a%%%02x", b"/%%%02X/b", b"/a/..%%%02x/b", b"/%%41%%%02x"])
def test_an_encoded_byte_that_servers_disagree_about_is_refused(form, value):
    assert isinstance(canonical_target(form % value), Refusal)


@pytest.mark.parametrize(
    "raw", [b"", b"*", b"a", b"http://a/", b"?", b"?/a", b".", b"../a", b"%2Fa", b"\\a"]
)
def test_a_target_that_is_no_path_is_refused(raw):
    assert isinstance(canonical_target(raw), Refusal)


@pytest.mark.parametrize(
    "raw",
    [
        b"/..;jsessionid=1",
        b"/a/.;jsessionid=1",
        b"/a;jsessionid=1/b",
        b"/a;JSESSIONID=1",
        b"/a;jsessionid=1;x=2",
        b"/a;",
    ],
)
def test_a_session_id_is_only_taken_off_where_it_can_be_nothing_else(raw):
    assert isinstance(canonical_target(raw), Refusal)


@pytest.mark.parametrize(
    "raw", [b"/a/%2e./b", b"/a/.%2E/b", b"/a/x/../../b", b"/./b", b"/b", b"//b", b"/././/b"]
)
def test_every_way_to_say_one_path_gives_one_form(raw):
    assert canonical_target(raw) == Target("/b", "", b"/b")


@pytest.mark.parametrize(
    "raw", [b"/a//x/../../b", b"/a//..", b"//../b", b"/a//.././b", b"/a//./../b"]
)
def test_dots_behind_an_empty_segment_are_ambiguous(raw):
    assert isinstance(canonical_target(raw), Refusal)


def test_a_closing_slash_is_kept_and_dots_at_the_end_leave_one():
    assert [canonical_target(raw).path for raw in (b"/a/", b"/a//", b"/a/.", b"/a/b/..", b"/a", b"/a.", b"/...", b"/.a/b")] == [
        "/a/", "/a/", "/a/", "/a/", "/a", "/a.", "/...", "/.a/b"
    ]  # fmt: skip


def test_a_target_may_be_as_long_as_the_limit_and_no_longer():
    assert isinstance(canonical_target(b"/" + b"a" * (TARGET_MAX - 1)), Target)
    assert canonical_target(b"/" + b"a" * TARGET_MAX).status == 414
    assert canonical_target(b"/a?" + b"a" * TARGET_MAX).status == 414


def test_a_reason_never_repeats_what_was_asked():
    for raw in (b"/<script>\x00", b"/%00<script>", b"/;<script>", b"/a?<script>\x01"):
        assert "script" not in canonical_target(raw).reason


def test_punctuation_matches_alike_encoded_or_not():
    assert matching_path("/c%2B%2B/%21%24%26%27%28%29%2A%2C%3A%3D%40") == "/c++/!$&'()*,:=@"
    assert matching_path("/caf%C3%A9/%25/%20/%3F/%23/%5B") == "/caf%C3%A9/%25/%20/%3F/%23/%5B"
