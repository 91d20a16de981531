"""The gateway measures how origins answer the documents of admitted visitors, and nothing else."""

import asyncio

import pytest

from greenroom.decision.verdict import Forward
from greenroom.gateway.origin.address import Origin
from greenroom.model.record import replace
from greenroom.model.visit import Ticket

PAGE = "Accept: text/html\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
IMAGE = "Accept: image/*\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n"
INSIDE = Forward(room_id="room", ticket=Ticket(b"t" * 12, 1, 1, 1, 0))


def says(status: int) -> bytes:
    return b"HTTP/1.1 %d Said\r\nContent-Length: 2\r\n\r\nok" % status


@pytest.mark.parametrize(
    ("verdict", "head", "status", "counted"),
    [
        (INSIDE, PAGE, 200, (1, 0)),
        (INSIDE, PAGE, 404, (1, 0)),
        (INSIDE, PAGE, 500, (0, 1)),
        (INSIDE, PAGE, 503, (0, 1)),
        (INSIDE, IMAGE, 200, (0, 0)),
        (INSIDE, IMAGE, 500, (0, 0)),
        (Forward(room_id="room"), PAGE, 200, (0, 0)),
        (Forward(room_id="room", ticket=INSIDE.ticket, provisional=True), PAGE, 500, (0, 0)),
    ],
)
async def test_documents_of_admitted_visitors_are_counted(
    rig, verdict, head, status, counted
) -> None:
    rig.decisions.decide = lambda _: verdict
    rig.app = rig.says(says(status))
    async with rig.running(), rig.visitor() as talk:
        assert (await talk.get(head=head)).status == status
        found = rig.counts.documents.of("room")
        assert (found.histogram.total if found else 0, found.failed if found else 0) == counted
        rig.counts.documents.keep({"other"})
        assert rig.counts.documents.of("room") is None


async def test_an_origin_that_refuses_or_breaks_off_has_failed(rig, refusing_port) -> None:
    rig.decisions.decide = lambda _: INSIDE
    async with (
        rig.running(origin=Origin.of(f"http://127.0.0.1:{refusing_port()}")),
        rig.visitor() as talk,
    ):
        assert (await talk.get(head=PAGE)).status == 502
        assert (await talk.get(head=IMAGE)).status == 502
        assert rig.counts.documents.of("room").failed == 1


async def test_the_time_counts_from_the_line_for_a_connection_on(rig) -> None:
    async def slow(_: object, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)  # the answer is slow
        writer.write(says(200))

    rig.decisions.decide = lambda _: INSIDE
    rig.app = slow
    async with rig.running(origin_connections=1), rig.visitor() as one, rig.visitor() as two:
        answers = await asyncio.gather(one.get(head=PAGE), two.get(head=PAGE))
        assert [answer.status for answer in answers] == [200, 200]
        found = rig.counts.documents.of("room").histogram
        assert found.total == 2
        assert found.sum_ms >= 440, "the second one waited for the first"


@pytest.mark.parametrize(
    ("verdict", "head", "status", "failures"),
    [
        (INSIDE, PAGE, 500, 1),
        (INSIDE, PAGE, 502, 1),
        (INSIDE, PAGE, 504, 1),
        (INSIDE, PAGE, 501, 0),
        (INSIDE, PAGE, 404, 0),
        (INSIDE, PAGE, 200, 0),
        (INSIDE, IMAGE, 500, 0),
        (Forward(room_id="room"), PAGE, 500, 0),
        (Forward(room_id="room", ticket=INSIDE.ticket, provisional=True), PAGE, 500, 0),
    ],
)
async def test_failed_documents_of_admitted_visitors_keep_their_turn(
    rig, verdict, head, status, failures
) -> None:
    lines = b"Greenroom-Session: ends=1\r\n"
    rig.decisions.decide = lambda _: replace(verdict, set_cookie=rig.TICKET, lines=lines)
    rig.app = rig.says(says(status))
    async with rig.running(), rig.visitor() as talk:
        response = await talk.get(head=head)
        assert (response.status, response.whole) == (status, True)
        assert response.all("Set-Cookie") == [rig.TICKET.decode()]
        assert response.header("Greenroom-Session") == "ends=1"
        assert rig.decisions.failed == failures
