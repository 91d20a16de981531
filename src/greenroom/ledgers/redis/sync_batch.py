"""Converts reports and answers of a ledger in Redis from and to `admission.messages.sync`."""

from collections.abc import Iterator
from struct import Struct
from typing import Any

import msgspec
from msgspec import msgpack

from greenroom.admission.messages.moves import MovesUp
from greenroom.admission.messages.places import PlacesDown, PlacesUp
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.admission.messages.turns import TurnsDown, TurnsUp

_ARRIVAL, _WANTED = Struct("<12sd"), Struct("<12sB")
_REPORTS = msgpack.Decoder(SyncUp)


def report_of(reply: list[Any]) -> SyncUp:
    up = msgspec.structs.replace(
        _REPORTS.decode(reply[0]),
        fence_ms=int(reply[2]),
        remembers_ms=int(reply[3]),
        unknown_ms=int(reply[4]),
    )
    if reply[1] is None:
        return up
    given, gifts, arrived, claims, unknown, kept, left, turns, places = reply[1]
    return msgspec.structs.replace(
        up,
        moves=MovesUp(
            given,
            tuple(_triples(gifts)),
            arrived,
            tuple(_triples(claims)),
            tuple(unknown),
            tuple(_numbered(kept)),
            tuple([(left[place], left[place + 1].decode()) for place in range(0, len(left), 2)]),
            _turns_of(turns) if turns else None,
            _places_of(places) if places else None,
        ),
    )


def arguments_of(down: SyncDown) -> list[bytes]:
    """Returns numbers as a map, the wait table (empty: none), arrivals, wanted and denied of moves, and
    the summary with its number.
    """
    values = {
        name: getattr(down, name)
        for name in down.__struct_fields__
        if name not in ("wait_table", "moves", "summary")
    }
    moves, parts = down.moves, [b"", b"", b""]
    if moves:
        values["moves"] = {
            "given": moves.given,
            "arrived": moves.arrived,
            "taken": moves.taken,
            "sources": moves.sources,
            "turns": moves.turns and _for_lua(moves.turns),
            "places": moves.places and _places_for_lua(moves.places),
        }
        arrivals = b"".join([_ARRIVAL.pack(*arrival) for arrival in moves.arrivals])
        wanted = b"".join(
            [
                _WANTED.pack(ticket_id, len(to.encode())) + to.encode()
                for ticket_id, to in moves.wanted
            ]
        )
        parts = [arrivals, wanted, b"".join(moves.denied)]
    return [
        msgpack.encode(values),
        msgpack.encode(down.wait_table) if down.wait_table else b"",
        *parts,
        msgpack.encode((down.number, down.summary)) if down.summary else b"",
    ]


def _for_lua(turns: TurnsDown) -> dict[str, Any]:
    """With ids in hexadecimal: Lua's MessagePack knows no bytes."""
    return {
        "elsewhere": turns.elsewhere,
        **{
            name: [(one[0].hex(), *one[1:]) for one in getattr(turns, name)]
            for name in ("rows", "got", "sought")
        },
    }


def _places_for_lua(places: PlacesDown) -> dict[str, Any]:
    return {
        "asks": [(old.hex(), new.hex(), *rest) for old, new, *rest in places.asks],
        "said": [(old.hex(), *rest) for old, *rest in places.said],
        "tell": places.tell,
        "learners": places.learners,
        "moved": [(old.hex(), new.hex(), *rest) for old, new, *rest in places.moved],
    }


def _places_of(reply: list[Any]) -> PlacesUp:
    asks, said, told, moved = reply
    return PlacesUp(
        tuple([tuple(asks[at : at + 4]) for at in range(0, len(asks), 4)]),
        tuple(
            [
                (said[at], said[at + 1].decode(), *said[at + 2 : at + 5])
                for at in range(0, len(said), 5)
            ]
        ),
        told,
        tuple(
            [
                (moved[at], moved[at + 1], moved[at + 2].decode(), moved[at + 3])
                for at in range(0, len(moved), 4)
            ]
        ),
    )


def _turns_of(reply: list[Any]) -> TurnsUp:
    failing, rows, got, seeks = reply
    return TurnsUp(
        bool(failing),
        tuple(
            [
                (rows[at], rows[at + 1].decode(), *rows[at + 2 : at + 6])
                for at in range(0, len(rows), 6)
            ]
        ),
        tuple(_triples(got)),
        tuple([(seeks[at], seeks[at + 1]) for at in range(0, len(seeks), 2)]),
    )


def _numbered(flat: list[Any]) -> Iterator[tuple[int, bytes, str, int]]:
    for place in range(0, len(flat), 4):
        yield flat[place], flat[place + 1], flat[place + 2].decode(), flat[place + 3]


def _triples(flat: list[Any]) -> Iterator[tuple[bytes, str, int]]:
    for place in range(0, len(flat), 3):
        yield flat[place], flat[place + 1].decode(), flat[place + 2]
