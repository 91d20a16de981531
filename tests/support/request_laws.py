"""The laws of reading one request head, as plain functions: the property tests and the fuzzers
check the same ones.
"""

from ipaddress import ip_network

import httptools

from greenroom.gateway.wire.forwarded_head import _passed, outgoing_head
from greenroom.gateway.wire.head_records import HeaderLines, RequestHead
from greenroom.gateway.wire.header_lines import COOKIE, FORWARDED_FOR, read_header_lines
from greenroom.gateway.wire.hop import MARK
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.model.record import replace
from greenroom.request.admissible import signs_of
from greenroom.request.canonical import Refusal, Target, canonical_target
from greenroom.request.forwarded import ForwardedPolicy

OURS = frozenset((b"__cfwaitingroom",))
STRANGER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())
PROXY = Peer(
    "10.0.0.1", tls=False, policy=ForwardedPolicy([ip_network("10.0.0.0/8")], trust_host=True)
)
STATUSES = frozenset((400, 405, 414, 417, 431, 505))


def check_head(block: bytes) -> RequestHead | None:
    """All laws for one block of bytes; what was understood, or None when it was refused."""
    for peer in (STRANGER, PROXY):
        head = read_head(block, peer)
        if isinstance(head, Refusal):
            assert head.status in STATUSES, head
            assert [read_head(block, peer) for _ in range(2)] == [head] * 2
            return None
        _means_one_thing(head)
        _remembering_changes_nothing(block, head)
        _comes_back_the_same(head, peer)
    _llhttp_agrees(block, head)
    return head


def _means_one_thing(head: RequestHead) -> None:
    arrival = head.arrival
    assert head.content_length is None or not head.chunked
    assert head.upgrade in (b"", b"websocket")
    assert arrival.host == arrival.host.lower() != ""
    assert head.method.decode() == arrival.method
    if head.target != b"*" and arrival.readings:
        # sent as it came: a reading is its canonical form, or it has none
        read = canonical_target(head.target)
        assert isinstance(read, Refusal) or (
            read.path in arrival.readings and read.query == arrival.query
        )
    elif head.target != b"*":
        assert canonical_target(head.target) == Target(arrival.path, arrival.query, head.target)
    names = [name for name, _ in arrival.headers]
    assert all(name and name == name.lower() and b"_" not in name for name in names)
    assert names.count(b"host") == 1 or (not names.count(b"host") and arrival.version == "HTTP/1.0")
    assert arrival.facts == (dict(arrival.headers) if len(set(names)) == len(names) else None)
    assert not any(
        byte in value for _, value in arrival.headers for byte in (b"\r", b"\n", b"\x00")
    )


def _remembering_changes_nothing(block: bytes, head: RequestHead) -> None:
    """Lines that are read whole, seen again, and filled into what is remembered, are the same
    lines.
    """
    raw = block[block.find(b"\r\n") :]
    for varying in ((), (COOKIE,), (COOKIE, FORWARDED_FOR)):
        read = [read_header_lines(raw, varying) for _ in range(3)]
        assert [_meaning(lines) for lines in read] == [_meaning(head.lines)] * 3
        assert {lines.frame.passed for lines in read} <= {
            None,
            _passed(_meaning(head.lines), PROXY.policy.kept),
        }
        assert {lines.frame.signs for lines in read} <= {None, signs_of(dict(head.arrival.headers))}
        for begin in {b"\r\nCookie:", b"\r\ncookie:", b"\r\nX-Forwarded-For:"}:
            assert begin not in raw or isinstance(
                read_header_lines(raw.replace(begin, begin + b"\x00"), varying), Refusal
            )


def _meaning(lines: HeaderLines) -> HeaderLines:
    """Without what was made of the lines since."""
    return replace(
        lines, frame=replace(lines.frame, passed=None, passed_without=None, signs=None, framings={})
    )


def _comes_back_the_same(head: RequestHead, peer: Peer) -> None:
    """What the origin is sent says the same, and a second greenroom behind would send the same
    bytes.
    """
    sent = outgoing_head(head, peer, b"", OURS)
    assert sent.count(b"\r\n\r\n") == 1
    assert sent.endswith(b"\r\n\r\n")
    other = MARK[:-16] + b"0" * 16  # the second one is another process
    passed_on = sent.replace(MARK, other)
    again = read_head(passed_on, PROXY)
    assert isinstance(again, RequestHead), (again, sent)
    for fact in ("method", "target", "content_length", "chunked", "upgrade", "authority"):
        assert getattr(again, fact) == getattr(head, fact), fact
    for fact in ("host", "path", "query", "client", "scheme"):
        assert getattr(again.arrival, fact) == getattr(head.arrival, fact), fact
    cookies = [
        pair.partition(b"=")[0].strip()
        for name, value in again.arrival.headers
        if name == b"cookie"
        for pair in value.split(b";")
    ]
    assert not OURS.intersection(cookies)
    assert outgoing_head(again, PROXY, b"", OURS) == sent.replace(MARK, other + b", " + MARK)
    _llhttp_agrees(passed_on, again)


class _Reading:
    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_message_complete(self) -> None:
        self.complete = True


def _llhttp_agrees(block: bytes, head: RequestHead) -> None:
    """llhttp reads the same method, target and headers, and finds the end of the body where we find
    it.
    """
    reading = _Reading()
    parser = httptools.HttpRequestParser(reading)
    body = (
        b"0\r\n\r\n"
        if head.chunked
        else b"x" * (head.content_length or 0)
        if (head.content_length or 0) < 10_000
        else b""
    )
    try:
        parser.feed_data(block)
        assert reading.complete == (not head.chunked and not head.content_length)
        parser.feed_data(body[:-1])
        assert not reading.complete or not body
        parser.feed_data(body[-1:])
        assert reading.complete or (head.content_length or 0) >= 10_000
    except httptools.HttpParserInvalidMethodError:
        return  # an extension method that llhttp has no number for
    except httptools.HttpParserUpgrade:
        assert b"upgrade" in head.hops
    except httptools.HttpParserError:
        if b"chunked\t" in block.lower():
            return  # a tab is allowed white space; refusing it is not a second reading
        raise
    assert parser.get_method() == head.method
    assert parser.get_http_version() == f"1.{head.minor}"
    assert (
        tuple((name, value.strip()) for name, value in reading.headers if b"_" not in name)
        == head.arrival.headers
    )
    if reading.target.startswith(b"/"):
        assert canonical_target(reading.target) == canonical_target(head.target)
