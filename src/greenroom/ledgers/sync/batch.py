"""Messages between a data center and the coordinator: all rooms in one batch, as msgpack.

Fields are positional and new ones are added at the end, so two versions understand each other
during an upgrade.
"""

import msgspec

from greenroom.admission.messages.sync import SyncDown, SyncUp

BATCH_MAX_BYTES = 16 << 20
"""A thousand rooms with long lines stay below."""


class ReportBatch(msgspec.Struct, frozen=True, array_like=True):
    number: int  # comes back in the answer
    rooms: dict[str, SyncUp]
    dead: bool = False  # not from there: an operator's word that nothing runs there any more


class AnswerBatch(msgspec.Struct, frozen=True, array_like=True):
    """A room that the coordinator does not know (yet) is left out."""

    number: int  # of the report
    rooms: dict[str, SyncDown]


encode = msgspec.msgpack.Encoder().encode
_report = msgspec.msgpack.Decoder(ReportBatch)
_answer = msgspec.msgpack.Decoder(AnswerBatch)


def report_of(batch: bytes) -> ReportBatch:
    """Raises ValueError for what is no report."""
    if len(batch) > BATCH_MAX_BYTES:
        raise ValueError(
            f"a sync batch of {len(batch)} bytes, at most {BATCH_MAX_BYTES} are allowed"
        )
    return _report.decode(batch)


def answer_of(batch: bytes) -> AnswerBatch:
    """Raises ValueError for what is no answer."""
    if len(batch) > BATCH_MAX_BYTES:
        raise ValueError(
            f"a sync batch of {len(batch)} bytes, at most {BATCH_MAX_BYTES} are allowed"
        )
    return _answer.decode(batch)
