"""Stores visitors' requests to be called: sealed, within limits, one row for each place."""

import asyncio
import hmac
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from greenroom.calls.rules import rekeyed
from greenroom.calls.web_push import CURVE, bytes_of, public_bytes, text_of, vapid_key
from greenroom.decision.calling import Channels
from greenroom.errors import StorageFailed
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.ledgers.calls import CallStore
from greenroom.model.call import DECOY, EMAIL, PUSH, VisitorCall
from greenroom.model.record import replace
from greenroom.model.visit import HOME_BYTES
from greenroom.outbound import Guard, OutboundRefused, read_target
from greenroom.request.forwarded import network_of, parse_address

HOUR_MS, DAY_MS = 3_600_000, 86_400_000

PER_ADDRESS, PER_ADDRESS_MS = 3, DAY_MS
"""Requests to confirm in all rooms together: the most a stranger can be sent."""

PER_NETWORK, PER_NETWORK_MS = 100, HOUR_MS
"""Visitors of a mobile network share an address."""

PER_ROOM, PER_ROOM_MS = 300, 60_000

WRITES = 3
"""Attempts to change a row that the sender changes at the same moment."""

AT_ONCE = 200
"""Requests that wait for the disk, about two seconds; further ones are told to try again."""

REFUSED_MS = 30 * DAY_MS
"""How long nothing is sent to an address whose owner refused."""

T = TypeVar("T")

_PURPOSE_PUSH, _PURPOSE_NAMES = "push", "calls"


class SealedCalls:
    """Rows as records. Methods raise StorageFailed."""

    def __init__(self, store: CallStore, secrets: SealedSecrets) -> None:
        self.store = store
        self._secrets = secrets

    async def get(self, room_id: str, ticket_id: bytes) -> tuple[VisitorCall, bytes] | None:
        """With its sealed form. None, too, for a row that this process cannot open (yet)."""
        sealed = await self.store.get(room_id, ticket_id)
        if sealed is None:
            return None
        try:
            opened = self._secrets.open(sealed.decode(), _of(room_id))
            return msgspec.json.decode(opened, type=VisitorCall), sealed
        except (StorageFailed, ValueError):
            return None

    async def put(
        self, room_id: str, ticket_id: bytes, call: VisitorCall, was: bytes | None = None
    ) -> bytes | None:
        """Its sealed form; None: there is another row than `was`."""
        sealed = self._secrets.seal(msgspec.json.encode(call).decode(), _of(room_id)).encode()
        return sealed if await self.store.put(room_id, ticket_id, sealed, was) else None

    def hashed(self, text: str) -> bytes:
        """HOME_BYTES of a keyed hash, which names the address in links of mails."""
        secret = self._secrets.derived(_PURPOSE_NAMES)[1]
        return hmac.digest(secret, text.lower().encode(), "sha256")[:HOME_BYTES]

    def owner(self, call: VisitorCall) -> bytes:
        """As `hashed`, of the mailbox or endpoint."""
        return self.hashed(_mailbox(call.to) if call.channel == EMAIL else call.to)

    def push_secret(self, key_id: str = "") -> tuple[str, bytes]:
        return self._secrets.derived(_PURPOSE_PUSH, key_id)


class Desk:
    """Make it inside the event loop."""

    def __init__(
        self,
        calls: SealedCalls,
        guard: Callable[[], Guard],
        mails: Callable[[], bool],
        on_error: Callable[[BaseException], None],
        center: str = "",
    ) -> None:
        """`mails`: whether a mail server is set. `center`: this data center."""
        self._center = center
        self._calls = calls
        self._guard = guard
        self._mails = mails
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()
        self._channels: tuple[str, str] | None = None

    def channels(self) -> Channels:
        if self._channels is None:
            try:
                key_id, secret = self._calls.push_secret()
            except StorageFailed as error:
                self._on_error(error)
                return Channels(self._mails())
            self._channels = text_of(public_bytes(vapid_key(secret))), key_id
        return Channels(self._mails(), *self._channels)

    def run(
        self, work: Coroutine[Any, Any, T], failed: T, then: Callable[[T], None] | None = None
    ) -> None:
        async def run() -> None:
            try:
                found = await work
            except Exception as error:
                self._on_error(error)
                found = failed
            if then is not None:
                then(found)

        loop = asyncio.get_running_loop()
        if len(self._tasks) >= AT_ONCE:
            work.close()
            if then is not None:
                loop.call_soon(then, failed)
            return
        task = loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def put(self, room_id: str, ticket_id: bytes, call: VisitorCall, client: str) -> str:
        if call.channel == PUSH and not self._usable(call):
            return "invalid"
        calls, take = self._calls, self._calls.store.take
        call = replace(call, center=self._center)
        network = counted_as(client)
        if network and not await take(self._named("network", network), PER_NETWORK, PER_NETWORK_MS):
            return "many"
        if not await take(self._named("room", room_id), PER_ROOM, PER_ROOM_MS):
            return "many"
        may_send: bool | None = None
        for _ in range(WRITES):
            before = await calls.get(room_id, ticket_id)
            was, wanted = before[1] if before else None, call
            if before is not None and self._same(before[0], call):
                wanted = replace(before[0], travel_ms=call.travel_ms, center=self._center)
            else:
                if may_send is None:
                    name = _named_address(calls.owner(call))
                    may_send = await take(name, PER_ADDRESS, PER_ADDRESS_MS)
                if before is not None:  # the link to the address before must not confirm this one
                    wanted = replace(call, asked_ms=max(call.asked_ms, before[0].asked_ms + 1))
                if not may_send:
                    if call.channel == PUSH:  # whoever has the endpoint is its owner
                        await calls.store.drop(room_id, ticket_id)
                        return "many"
                    wanted = self._decoy(wanted)
            if await calls.put(room_id, ticket_id, wanted, was):
                return _state(wanted)
        return "invalid"

    def _decoy(self, call: VisitorCall) -> VisitorCall:
        """Stored instead, so that no answer tells who has refused."""
        return replace(call, to=self._calls.hashed(call.to).hex(), sent=DECOY)

    def _same(self, before: VisitorCall, call: VisitorCall) -> bool:
        hashed = self._calls.hashed
        to = before.to if before.sent == DECOY else hashed(before.to).hex()
        return (before.channel, to, before.p256dh, before.auth) == (
            call.channel, hashed(call.to).hex(), call.p256dh, call.auth,
        )  # fmt: skip

    async def move(self, room_id: str, old: bytes, new: bytes, drawn: Callable[[int], int]) -> None:
        await self._stays_there(room_id, old, drawn)
        await self._calls.store.move(room_id, old, new)
        await self._stays_there(room_id, new, drawn)  # the sender was quicker, or it has a row

    async def _stays_there(
        self, room_id: str, ticket_id: bytes, drawn: Callable[[int], int]
    ) -> None:
        """Notes that the place is in this data center, with the key that a draw gave to the id."""
        for _ in range(WRITES):
            found = await self._calls.get(room_id, ticket_id)
            if found is None:
                return
            call = replace(rekeyed(found[0], drawn(found[0].key)), center=self._center)
            if call == found[0] or await self._calls.put(room_id, ticket_id, call, found[1]):
                return

    def _usable(self, call: VisitorCall) -> bool:
        try:
            target = read_target(call.to)
            key = self._calls.push_secret(call.vapid)[0]
            ec.EllipticCurvePublicKey.from_encoded_point(CURVE, bytes_of(call.p256dh))
        except (OutboundRefused, StorageFailed, ValueError):
            return False
        refused = self._guard().policy.target_problem(target)
        return not refused and key == call.vapid

    async def find(self, room_id: str, ticket_id: bytes) -> VisitorCall | None:
        found = await self._calls.get(room_id, ticket_id)
        return found[0] if found else None

    async def confirm(self, room_id: str, ticket_id: bytes, asked_ms: int) -> bool:
        for _ in range(WRITES):
            found = await self._calls.get(room_id, ticket_id)
            if found is None or found[0].asked_ms != asked_ms or found[0].sent == DECOY:
                return False
            if found[0].confirmed or await self._calls.put(
                room_id, ticket_id, replace(found[0], confirmed=True, sent=""), found[1]
            ):
                return True
        return False

    async def refuse(self, room_id: str, ticket_id: bytes, address: bytes) -> bool:
        await self._calls.store.block(_named_address(address), REFUSED_MS)
        for _ in range(WRITES):
            found = await self._calls.get(room_id, ticket_id)
            if found is None or self._calls.owner(found[0]) != address:
                return True
            if found[0].confirmed:
                break
            # a missing row would tell whoever asked
            if await self._calls.put(room_id, ticket_id, self._decoy(found[0]), found[1]):
                return True
        await self._calls.store.drop(room_id, ticket_id)
        return True

    async def drop(self, room_id: str, ticket_id: bytes) -> bool:
        await self._calls.store.drop(room_id, ticket_id)
        return True

    def _named(self, kind: str, text: str) -> str:
        return f"{kind}:{self._calls.hashed(text).hex()}"


def _state(call: VisitorCall) -> str:
    return "on" if call.confirmed else "check"


def _mailbox(address: str) -> str:
    """Mail to `ann+anything@` comes to `ann@`, and Google ignores dots."""
    local, at, domain = address.lower().rpartition("@")
    local = local.partition("+")[0] or local
    if domain in ("gmail.com", "googlemail.com"):
        local, domain = local.replace(".", ""), "gmail.com"
    return f"{local}{at}{domain}"


def _named_address(hashed: bytes) -> str:
    return f"address:{hashed.hex()}"


def counted_as(client: str) -> str:
    """Empty where a proxy withholds the address: all its visitors would count as one."""
    return network_of(client) if parse_address(client) else ""


def _of(room_id: str) -> str:
    return f"call {room_id}"
