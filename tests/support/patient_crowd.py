"""A crowd of visitors with cookies over real sockets, who come back when told to; and what the
origin says about the limits afterwards.
"""

import asyncio
import heapq
import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from many_data_centers import Edge, Origin, Request, World

AT_ONCE = 150
"""Requests under way."""
PATIENCE_S = 15.0
AGAIN_S = (1.0, 3.0)


@dataclass
class Visitor:
    number: int
    data_center: str
    pages: int  # to look at once inside
    cookie: bytes = b""
    arrived: float = 0.0
    in_line: float = 0.0  # since when the place is real
    entered: float = 0.0
    held_inside: list[float] = field(
        default_factory=list
    )  # when a living session was answered with the waiting page
    tries: int = 0
    unanswered: int = 0


class Crowd:
    """Everybody comes within `come_s` seconds, each to one data center, and stays until let in and
    done.
    """

    def __init__(
        self,
        world: World,
        visitors: int,
        come_s: float,
        session_s: float,
        seed: int,
        pages: int,
        page_s: tuple[float, float],
    ) -> None:
        self.world, self.session_s, self._page_s = world, session_s, page_s
        self.chance = random.Random(seed)
        self.began = time.monotonic()
        self.visitors = [
            Visitor(number, self.chance.choice(world.names), self.chance.randint(1, pages))
            for number in range(visitors)
        ]
        self._due = [
            (self.began + self.chance.uniform(0, come_s), one.number) for one in self.visitors
        ]
        heapq.heapify(self._due)
        self._idle: dict[int, list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, until: float) -> None:
        """Until everybody is done, or this moment."""
        while (self._due or self._under_way) and time.monotonic() < until:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now and len(self._under_way) < AT_ONCE:
                task = asyncio.create_task(self._visit(self.visitors[heapq.heappop(self._due)[1]]))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            await asyncio.sleep(0.005)  # visitors come in real time
        for task in self._under_way:
            task.cancel()

    async def _visit(self, one: Visitor) -> None:
        now = time.monotonic()
        one.arrived = one.arrived or now
        edges = self.world.of(one.data_center)
        self.chance.shuffle(edges)
        self.world.origin.sent[one.number] = sent = now
        for edge in edges:
            try:
                head = await asyncio.wait_for(self._ask(edge, one), PATIENCE_S)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                one.unanswered += 1
                continue
            self._told(one, head, sent)
            return
        self._again(one, self.chance.uniform(*AGAIN_S))

    def _told(self, one: Visitor, head: bytes, sent: float) -> None:
        now = time.monotonic()
        fields = head.lower()
        cookie = head.partition(b"__cfwaitingroom=")[2].partition(b";")[0]
        was_here = bool(one.cookie)
        one.cookie = cookie or one.cookie
        one.tries += 1
        if b"\r\nx-from-origin: 1" in fields:
            one.entered = one.entered or now
            one.pages -= 1
            if one.pages > 0:
                self._again(one, self.chance.uniform(*self._page_s))
            return
        if one.entered:
            last = self.world.origin.seen[one.number][-1].seen
            if sent - last < self.session_s:
                one.held_inside.append(now)
        elif was_here:
            one.in_line = one.in_line or now
        refresh = fields.partition(b"\r\nrefresh: ")[2].partition(b"\r\n")[0].partition(b";")[0]
        self._again(
            one,
            int(refresh) + self.chance.uniform(0, 0.5)
            if refresh.isdigit()
            else self.chance.uniform(*AGAIN_S),
        )

    def _again(self, one: Visitor, seconds: float) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, one.number))

    async def _ask(self, edge: Edge, one: Visitor) -> bytes:
        idle = self._idle.setdefault(edge.port, [])
        reader, writer = (
            idle.pop()
            if idle
            else await asyncio.open_connection("127.0.0.1", edge.port, limit=1 << 20)
        )
        try:
            cookie = b"Cookie: __cfwaitingroom=" + one.cookie + b"\r\n" if one.cookie else b""
            writer.write(
                b"GET / HTTP/1.1\r\nHost: shop.example\r\nX-Visitor: %d\r\nAccept: text/html\r\n%s\r\n"
                % (one.number, cookie)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(
                int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0] or 0)
            )
        except BaseException:
            writer.transport.abort()
            raise
        if b"\r\nconnection: close" in head.lower():
            writer.close()
        else:
            idle.append((reader, writer))
        return head


@dataclass
class Verdict:
    """What the origin saw. `most_*` count only what is beyond doubt: an admission lies between
    sending and seeing.
    """

    most_active: int = 0
    most_a_minute: int = 0
    entered: int = 0
    thrown_out: list[tuple[str, float]] = field(
        default_factory=list
    )  # pages of a living session that were answered with the waiting page
    held_inside: int = 0  # the same, while the Redis with the ledgers was dead
    never: int = 0
    overtaken_s: list[float] = field(default_factory=list)
    per_10_s: dict[str, Counter[int]] = field(default_factory=dict)


def judge(crowd: Crowd, origin: Origin, ended: float) -> Verdict:
    """Limits by what the origin saw, order by when visitors came."""
    verdict = Verdict()
    sessions = [
        one for requests in origin.seen.values() for one in _sessions(requests, crowd.session_s)
    ]
    verdict.most_active = _most_active(sessions, crowd.session_s)
    verdict.most_a_minute = _most_a_minute([one[0] for one in sessions])
    verdict.entered = sum(1 for one in crowd.visitors if one.entered)
    held = [(one.data_center, moment) for one in crowd.visitors for moment in one.held_inside]
    verdict.held_inside = sum(crowd.world.without_ledgers(*one) for one in held)
    verdict.thrown_out = [
        (one.data_center, moment - crowd.began)
        for one in crowd.visitors
        for moment in one.held_inside
        if not crowd.world.without_ledgers(one.data_center, moment)
    ]
    verdict.never = sum(1 for one in crowd.visitors if one.arrived and not one.entered)
    for name in crowd.world.names:
        here = [one for one in crowd.visitors if one.data_center == name and one.arrived]
        verdict.per_10_s[name] = Counter(
            int((one.entered - crowd.began) // 10) for one in here if one.entered
        )
        verdict.overtaken_s += _overtaken(here, ended)
    return verdict


def _sessions(requests: list[Request], session_s: float) -> list[tuple[Request, Request]]:
    """(first, last) request of each session. Who comes back within the renewal's tolerance may
    still have the old one.
    """
    found: list[tuple[Request, Request]] = []
    for one in requests:
        if found and one.sent - found[-1][1].seen < session_s + 6:
            found[-1] = (found[-1][0], one)
        else:
            found.append((one, one))
    return found


def _most_active(sessions: list[tuple[Request, Request]], session_s: float) -> int:
    changes = sorted(
        [(first.seen, 1) for first, _ in sessions]
        + [(last.sent + session_s, -1) for _, last in sessions]
    )
    active = most = 0
    for _, change in changes:
        active += change
        most = max(most, active)
    return most


def _most_a_minute(entries: Iterable[Request]) -> int:
    ordered, most, first = sorted(entries, key=lambda one: one.seen), 0, 0
    for index, one in enumerate(ordered):
        while one.seen - ordered[first].seen >= 60:
            first += 1
        most = max(
            most, sum(1 for other in ordered[first : index + 1] if one.seen - other.sent < 60)
        )
    return most


def _overtaken(here: list[Visitor], ended: float) -> list[float]:
    """For every visitor who stood in line: how much later a visitor came here who got in a good
    while (5 s) earlier; 0: no one did.
    """
    entered = sorted((one.entered, one.arrived) for one in here if one.entered)
    latest, latest_so_far, moments = 0.0, [], []
    for moment, arrived in entered:
        latest = max(latest, arrived)
        moments.append(moment)
        latest_so_far.append(latest)
    found = []
    for one in here:
        if one.in_line:
            index = bisect_left(moments, (one.entered or ended) - 5) - 1
            found.append(max(0.0, latest_so_far[index] - one.arrived) if index >= 0 else 0.0)
    return found
