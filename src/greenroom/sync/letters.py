"""What a data center and the coordinator write to each other: all rooms in one letter, as msgpack.

Fields are told apart by position and new ones are added at the end, so two versions understand each other while one replaces the other.
"""

import msgspec

from greenroom.admission.messages import SyncDown, SyncUp

LETTER_MAX_BYTES = 16 << 20
"""No letter is longer: a thousand rooms with a long line each stay below; what is longer was not written by us."""


class Report(msgspec.Struct, frozen=True, array_like=True):
    """From a data center."""

    number: int  # comes back in the answer
    rooms: dict[str, SyncUp]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """To a data center. A room that the coordinator does not know (yet) is left out."""

    number: int  # of the report
    rooms: dict[str, SyncDown]


encode = msgspec.msgpack.Encoder().encode
_report = msgspec.msgpack.Decoder(Report)
_answer = msgspec.msgpack.Decoder(Answer)


def report_of(letter: bytes) -> Report:
    """Raises ValueError for what is no report."""
    if len(letter) > LETTER_MAX_BYTES:
        raise ValueError(f"a letter of {len(letter)} bytes")
    return _report.decode(letter)


def answer_of(letter: bytes) -> Answer:
    """Raises ValueError for what is no answer."""
    if len(letter) > LETTER_MAX_BYTES:
        raise ValueError(f"a letter of {len(letter)} bytes")
    return _answer.decode(letter)
