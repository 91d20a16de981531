"""The laws of what follows a head: chunked bodies, Cookie headers and the tickets in them."""

from pathlib import Path
from tempfile import mkdtemp

from greenroom.decision.cookies import CANDIDATES_MAX, VALUE_MAX, ticket_values
from greenroom.decision.tickets import Sealer
from greenroom.gateway.wire.body import BadBody, ChunkedBody
from greenroom.gateway.wire.forwarded_head import without_cookies
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.visit import Ticket, make_key

NAME = b"__cfwaitingroom"
ROOM = b"room"
NOW_MS = 1_700_000_000_000
SEALER = Sealer(KeyRing(Path(mkdtemp()), NOW_MS))
SEALED = SEALER.seal(Ticket(bytes(12), make_key(NOW_MS, 1), 0, NOW_MS, 20_000), ROOM)


def read_chunks(pieces: list[bytes]) -> tuple[bytes, bool, bytes] | None:
    """Payload, whether it is whole, and what stands behind; None when it was refused."""
    body, payload = ChunkedBody(), b""
    try:
        for at, piece in enumerate(pieces):
            payload += body.feed(piece)
            if body.done:
                return payload, True, body.rest + b"".join(pieces[at + 1 :])
    except BadBody:
        return None
    return payload, body.done, body.rest


def check_body(data: bytes) -> None:
    """However it is cut into pieces, a body is read the same way or refused."""
    whole = read_chunks([data])
    bytewise = read_chunks([data[at : at + 1] for at in range(len(data))])
    if whole is None or bytewise is None:
        assert whole is bytewise
    else:
        assert whole == bytewise


def check_cookies(header: bytes) -> None:
    """Any Cookie header is stepped through: few short candidates, tickets only where we sealed
    them, nothing of greenroom's goes on.
    """
    found = ticket_values(((b"cookie", header),), NAME)
    assert len(found) <= CANDIDATES_MAX
    for value in found:
        assert len(value) <= VALUE_MAX
        ticket = SEALER.open(value, ROOM, NOW_MS)
        assert ticket is None or value == SEALED
    left = without_cookies(header, frozenset((NAME,)))
    assert ticket_values(((b"cookie", left),), NAME) == []
    assert without_cookies(left, frozenset((NAME,))) == left
