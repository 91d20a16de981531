"""Laws of the canonical form of a target, for any bytes."""

from urllib.parse import unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from greenroom.request.canonical import (
    Refusal,
    Target,
    canonical_target,
    matching_path,
)

PIECES = [
    b"/", b"//", b"/.", b"/..", b".", b"..", b"%2e", b"%2E%2e", b"%2f", b"%5c", b"\\", b"%00", b"%25", b"%252e", b"%", b"%4",
    b"%zz", b";", b"%3b", b"a",
    b"shop", b"%73hop", b"%C3%A9", b"%c3", b"%A9", b"\xc3\xa9", b" ", b"\t", b"?", b"#", b"%20", b"+", b"%2B", b"~", b"%7e",
    b"[", b"|", b"%5B",
    b";jsessionid=1", b"%32", b"%65", b"%25%32%65", b"@", b":", b"*", b"=", b"&",
]  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), max_size=12).map(lambda parts: b"/" + b"".join(parts))
targets = st.one_of(
    hostile, st.binary(max_size=60), st.binary(max_size=40).map(lambda raw: b"/" + raw)
)
plain_segments = st.text("abcdefgXYZ0189-_~.!$&'()*+,=:@", min_size=1, max_size=6).filter(
    lambda text: text not in (".", "..")
)
plain_paths = st.lists(plain_segments, max_size=5).map(lambda parts: "/" + "/".join(parts))


@given(targets)
def test_a_target_is_canonical_or_refused_and_never_an_error(raw):
    found = canonical_target(raw)
    assert isinstance(found, Target) or (isinstance(found, Refusal) and found.status == 400)


@given(targets)
def test_the_canonical_form_of_a_canonical_form_is_itself(raw):
    found = canonical_target(raw)
    if isinstance(found, Target):
        assert canonical_target(found.raw) == found
        assert found.raw == (found.path + ("?" + found.query if found.query else "")).encode(
            "ascii"
        )


@given(targets)
def test_a_canonical_path_can_be_read_in_one_way_only(raw):
    found = canonical_target(raw)
    if isinstance(found, Refusal):
        return
    path = found.path
    assert path.startswith("/")
    assert "//" not in path
    assert not {".", ".."} & set(path.split("/"))
    assert not set(path) & set('\\;#? "<>[]^`{|}')
    once = unquote_to_bytes(path)
    assert once.count(b"/") == path.count("/")
    assert not any(byte < 0x20 or byte == 0x7F for byte in once)
    once.decode("utf-8")
    segments_when_decoded_twice = unquote_to_bytes(once).split(b"/")
    assert len(segments_when_decoded_twice) == path.count("/") + 1
    assert not {b".", b".."} & set(segments_when_decoded_twice)


@given(plain_paths)
def test_a_path_that_needs_nothing_is_left_alone(path):
    assert canonical_target(path.encode()).path == path


@given(plain_paths, st.data())
def test_every_spelling_of_a_path_gives_the_same_form(path, data):
    """Encoding unreserved characters, doubling slashes and inserting dot segments changes nothing."""
    spelled = []
    for char in path:
        if char == "/":
            spelled.append(
                data.draw(st.sampled_from(["/", "/./", "//", "/%2e/", "/x/../", "/y/%2e%2E/"]))
            )
        elif char.isalnum() or char in "-._~":
            spelled.append(
                data.draw(st.sampled_from([char, f"%{ord(char):02x}", f"%{ord(char):02X}"]))
            )
        else:
            spelled.append(char)
    raw = "".join(spelled)
    assert canonical_target(raw.encode()).path == path


@given(targets)
def test_the_matching_form_only_ever_decodes_punctuation(raw):
    found = canonical_target(raw)
    if isinstance(found, Target):
        matched = matching_path(found.path)
        assert unquote_to_bytes(matched) == unquote_to_bytes(found.path)
        assert matched.count("/") == found.path.count("/")
        assert matching_path(matched) == matched


@given(st.binary(max_size=30))
def test_a_query_is_passed_as_it_was_sent_or_refused(query):
    found = canonical_target(b"/a?" + query)
    if isinstance(found, Target):
        assert found.query.encode() == query
