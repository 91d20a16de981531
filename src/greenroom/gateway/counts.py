"""Counters of the gateway."""

from collections.abc import Iterator

from greenroom.gateway.documents import Documents

MEANINGS: dict[str, str] = {
    "connections_opened": "connections accepted from visitors",
    "connections_open": "open connections from visitors",
    "connections_refused": "connections closed at once because a connection limit was reached",
    "connections_shed": "idle or stalled connections that were closed for new ones",
    "requests": "requests read, including refused ones",
    "refused": "requests refused as malformed, oversized or too slow (4xx and 505)",
    "answered": "requests answered by the waiting room",
    "forwarded": "requests allowed to go to an origin",
    "failed": "requests allowed to go to an origin that ended in 502, 503 or 504",
    "cut": (
        "responses cut off after they had begun, because the origin failed, the visitor stopped"
        " reading or its session ended"
    ),
    "abandoned": "requests whose visitor disconnected before the end of the response",
    "errors": "exceptions inside the gateway (the visitor was held; see the log)",
    "origin_connects": "connections opened to origins",
    "origin_connect_failures": "connections to origins that failed or took too long",
    "origin_connects_refused": (
        "connections to origins not opened, because the address is greenroom's own or link-local"
    ),
    "origin_connections_open": "open connections to origins",
    "origin_in_flight_bound": (
        "requests that may be in flight to an origin that is followed and was slow, the least of"
        " all; 0: only the limit of connections counts"
    ),
    "origin_shares_used_up": (
        "requests that had to wait, or got 503, because their client, ticket or kind had its share"
        " of the connections to an origin"
    ),
    "origin_retries": "requests sent again because the origin had closed a reused connection",
    "origin_invalid": "responses of origins that were not valid HTTP",
    "origin_answers": "responses of origins by the first digit of the status",
    "origin_wait_seconds": (
        "seconds from the first byte of a request to an origin until the head of its answer,"
        " summed up"
    ),
    "tunnels": "WebSocket tunnels opened",
    "tunnels_refused": "WebSockets refused because of a limit of tunnels",
    "tunnels_open": "open WebSocket tunnels",
    "streams_closed": "WebSockets, responses and uploads closed because their session had ended",
    "bytes_in": "bytes of request heads, bodies and tunnels sent to origins",
    "bytes_out": "bytes of responses and tunnels sent to visitors",
}

GAUGES = frozenset(
    ("connections_open", "origin_connections_open", "origin_in_flight_bound", "tunnels_open")
)


class Counts:
    """Incremented in place. No dataclass, because compiled code adds to plain attributes faster."""

    def __init__(self) -> None:
        self.connections_opened = 0
        self.connections_open = 0
        self.connections_refused = 0
        self.connections_shed = 0
        self.requests = 0
        self.refused = 0
        self.answered = 0
        self.forwarded = 0
        self.failed = 0
        self.cut = 0
        self.abandoned = 0
        self.errors = 0
        self.origin_connects = 0
        self.origin_connect_failures = 0
        self.origin_connects_refused = 0
        self.origin_connections_open = 0
        self.origin_in_flight_bound = 0
        self.origin_shares_used_up = 0
        self.origin_retries = 0
        self.origin_invalid = 0
        self.origin_answers = [0] * 6
        """By the first digit of the status."""
        self.origin_wait_seconds = 0.0
        self.documents = Documents()
        self.tunnels = 0
        self.tunnels_refused = 0
        self.tunnels_open = 0
        self.streams_closed = 0
        self.bytes_in = 0
        self.bytes_out = 0

    def described(self) -> Iterator[tuple[str, str, bool, float]]:
        """(name, help, is a gauge, value); `origin_1xx` to `origin_5xx` for the answers."""
        for name, meaning in MEANINGS.items():
            if name != "origin_answers":
                yield name, meaning, name in GAUGES, getattr(self, name)
                continue
            for digit in range(1, 6):
                yield (
                    f"origin_{digit}xx",
                    f"responses of origins with status {digit}xx",
                    False,
                    self.origin_answers[digit],
                )
