"""Messages between a data center and the coordinator, as msgpack. Fields are positional, new ones
last, so two versions understand each other.
"""

import msgspec

from greenroom.admission.messages.sync import SyncDown, SyncUp

BATCH_MAX_BYTES = 16 << 20


class ReportBatch(msgspec.Struct, frozen=True, array_like=True):
    number: int  # comes back in the answer
    rooms: dict[str, SyncUp]
    dead: bool = False  # sent by an operator: nothing runs there any more


class AnswerBatch(msgspec.Struct, frozen=True, array_like=True):
    number: int  # of the report
    rooms: dict[str, SyncDown]


encode = msgspec.msgpack.Encoder().encode
_report = msgspec.msgpack.Decoder(ReportBatch)
_answer = msgspec.msgpack.Decoder(AnswerBatch)


def report_of(batch: bytes) -> ReportBatch:
    """Raises ValueError."""
    return _report.decode(_bounded(batch))


def answer_of(batch: bytes) -> AnswerBatch:
    """Raises ValueError."""
    return _answer.decode(_bounded(batch))


def _bounded(batch: bytes) -> bytes:
    if len(batch) > BATCH_MAX_BYTES:
        raise ValueError(
            f"a sync batch of {len(batch)} bytes, at most {BATCH_MAX_BYTES} are allowed"
        )
    return batch
