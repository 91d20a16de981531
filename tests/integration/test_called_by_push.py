"""A visitor in line is called by browser push: encrypted for that browser, signed, through the guard."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from called_visitors import CallSite
from cryptography.hazmat.primitives.asymmetric import ec
from decision_sites import sites_in
from push_service import PushService, Subscription, signed_claims
from visitors import Browser

from greenroom.calls.desk import PER_ADDRESS
from greenroom.calls.sender import AT_ONCE, STRANGERS_AT_ONCE, CallSender, Handover, Tried
from greenroom.calls.web_push import CURVE, bytes_of, encrypted, text_of
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.call import SOON, VisitorCall
from greenroom.outbound import Guard, OutboundPolicy
from greenroom.outbound.mail import MailServer


@pytest.fixture
def service() -> Iterator[PushService]:
    started = PushService()
    yield started
    started.close()


@pytest.fixture
def play(tmp_path: Path, service: PushService) -> Callable[..., CallSite]:
    def played(
        story: Callable[[CallSite], Awaitable[None]], allowed: tuple[str, ...] = ("127.0.0.0/8",)
    ) -> CallSite:
        site = sites_in(tmp_path)(total_active_users=100, call_after_minutes=1)
        policy = OutboundPolicy(ports=(), allowed=allowed)
        guard = Guard(policy, service.resolve)
        called = CallSite(tmp_path, site, guard=guard, tls=service.trusted)
        asyncio.run(story(called))
        assert site.errors == []
        return called

    return played


async def subscribes(site: CallSite, browser: Browser, told: dict[str, str]) -> str:
    headers = ((b"accept", b"application/json"), (b"sec-fetch-site", b"same-origin"))
    offered = await site.visit(browser, query="greenroom=call", headers=headers)
    assert isinstance(offered, Answer)
    call = json.loads(offered.body)["greenroom"]["call"]
    assert call["state"] == "none"
    assert len(bytes_of(call["key"])) == 65
    return await site.asks(browser, channel="push", vapid=call["vapid"], **told)


def test_the_browser_reads_the_message_and_its_link_takes_the_place_up(
    play, service: PushService
) -> None:
    subscription = Subscription(service.url + "one")

    async def story(site: CallSite) -> None:
        waiting = site.joins(count=3)
        assert await subscribes(site, waiting, subscription.told) == "on"
        await site.passes(3_600_000, lambda: not site.others)
        await site.passes(1_200_000, lambda: bool(service.requests))
        path, headers, body = service.requests[-1]
        assert path == "/send/one"
        assert headers["content-encoding"] == "aes128gcm"
        assert headers["ttl"] == "600"
        claims = json.loads(signed_claims(headers["authorization"]))
        assert claims["aud"] == service.url.removesuffix("/send/")
        assert claims["exp"] - site.site.clock.ms // 1000 <= 86_400
        message = json.loads(subscription.read(body))
        assert message["title"] == "shop.example: It is your turn"
        assert message["last"]
        assert await site.rows() == 0
        phone, query = Browser(site.site), message["url"].partition("?")[2]
        await site.visit(phone, "POST", query)
        await site.passes(30_000)
        assert isinstance(await site.visit(phone), Forward)

    play(story)


def test_a_browser_that_is_gone_ends_the_row_and_a_busy_service_is_tried_again(
    play, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.calls.sender.RETRIES_S", (0.01, 0.01))

    async def story(site: CallSite) -> None:
        for status, tries in ((410, 1), (503, 3)):
            service.status = status
            service.requests.clear()
            waiting = site.joins()
            told = Subscription(service.url + str(status)).told
            assert await subscribes(site, waiting, told) == "on"
            await site.passes(1_200_000, lambda: bool(service.requests))
            assert len(service.requests) == tries
            assert await site.rows() == 0

    play(story)


def test_endpoints_that_answer_nothing_keep_no_other_visitor_from_being_called(
    play, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def attempt(_self: CallSender, sending: Handover) -> Tried:
        begun.append(sending.call.to)
        if "nothing" in sending.call.to:
            await asyncio.Event().wait()
        return Tried.SENT

    async def story(site: CallSite) -> None:
        (schedule,) = site.site.decisions.table.rooms.values()
        ends = [f"https://nothing{number}.fcm.example/" for number in range(AT_ONCE + 1)]
        tasks = [
            asyncio.create_task(site.sender._send(handover(schedule.now, channel, end)))
            for channel, end in [
                *(("push", end) for end in ends),
                ("push", "https://updates.push.services.mozilla.com/wpush/v2/a"),
                ("push", "https://fcm.googleapis.com/fcm/send/a"),
                ("email", "ann@mail.example"),
            ]
        ]
        await asyncio.wait_for(asyncio.gather(*tasks[len(ends) :]), 10)
        assert len(begun) == STRANGERS_AT_ONCE + 3
        for task in tasks:
            task.cancel()

    monkeypatch.setattr(CallSender, "_attempt", attempt)
    play(story)


def handover(room: CompiledRoom, channel: str, to: str) -> Handover:
    call = VisitorCall(channel, to, 7, 1, "en-US", "https://shop.example/", 600_000)
    return Handover(room, to.encode()[-12:], call, b"", SOON, 1, None, False)


def test_a_browser_that_wants_too_much_is_told_so(play, service: PushService) -> None:
    told = Subscription(service.url + "one").told

    async def story(site: CallSite) -> None:
        states = [await subscribes(site, site.joins(), told) for _ in range(PER_ADDRESS + 1)]
        assert states == ["on"] * PER_ADDRESS + ["many"]
        assert await site.rows() == PER_ADDRESS

    play(story)


@pytest.mark.parametrize(
    ("endpoint", "state"),
    [
        ("https://127.0.0.1:6379/", "invalid"),
        ("https://[::1]/", "invalid"),
        ("https://169.254.169.254/latest", "invalid"),
        ("http://push.example/", "invalid"),
        ("https://user:secret@push.example/", "invalid"),
        ("https://push.example/\r\nX: 1", "invalid"),
        ("file:///etc/passwd", "invalid"),
        ("https://push.example/" + "x" * 1_100, "invalid"),
        ("https://resolves-inside.example/", "on"),
    ],
)
def test_an_endpoint_inside_is_never_reached(
    play, service: PushService, endpoint: str, state: str
) -> None:
    async def story(site: CallSite) -> None:
        told = Subscription(endpoint).told
        assert await subscribes(site, site.joins(), told) == state
        await site.passes(600_000)
        assert service.requests == []
        assert await site.rows() == 0

    play(story, allowed=())


def test_keys_that_are_no_point_or_not_ours_are_refused(play, service: PushService) -> None:
    async def story(site: CallSite) -> None:
        told = Subscription(service.url).told
        waiting = site.joins()
        for wrong in (
            {"p256dh": text_of(b"\x04" + bytes(64))},
            {"p256dh": text_of(bytes(65))},
            {"p256dh": "x"},
            {"auth": "x" * 21},
        ):
            assert await subscribes(site, waiting, told | wrong) == "invalid", wrong
        assert await site.asks(waiting, channel="push", vapid="other", **told) == "invalid"

    play(story)


def test_a_push_service_is_told_an_address_without_a_name() -> None:
    server = MailServer("127.0.0.1", sender="The Shop <line@shop.example>")
    assert server.address == "line@shop.example"


def test_the_example_of_the_standard() -> None:
    """RFC 8291, appendix A."""
    sender = ec.derive_private_key(
        int.from_bytes(bytes_of("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big"), CURVE
    )
    p256dh = (
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    )
    body = encrypted(
        b"When I grow up, I want to be a watermelon",
        bytes_of(p256dh),
        bytes_of("BTBZMqHH6r4Tts7J_aSIgg"),
        sender,
        bytes_of("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert text_of(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS"
        "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qu"
        "lcy4a-fN"
    )
