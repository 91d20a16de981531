"""Counters of the gateway: plain ints on the hot path, exported as a mapping."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

GAUGE = "gauge"
HELP = "help"


def _count(help: str, *, gauge: bool = False) -> Any:
    return field(default=0, metadata={HELP: help, GAUGE: gauge})


@dataclass(slots=True)
class Counts:
    """Incremented where things happen. All only grow, except the gauges."""

    connections_opened: int = _count("connections accepted from visitors")
    connections_open: int = _count("open connections from visitors", gauge=True)
    connections_refused: int = _count("connections closed at once because a connection limit was reached")
    requests: int = _count("requests read, including refused ones")
    refused: int = _count("requests refused as malformed, oversized or too slow (4xx and 505)")
    answered: int = _count("requests answered by the waiting room")
    forwarded: int = _count("requests allowed to go to an origin")
    failed: int = _count("requests allowed to go to an origin that ended in 502, 503 or 504")
    cut: int = _count("responses cut off after they had begun, because the origin failed, the visitor stopped reading or its session ended")
    abandoned: int = _count("requests whose visitor disconnected before the end of the response")
    errors: int = _count("exceptions inside the gateway (the visitor was held; see the log)")
    origin_connects: int = _count("connections opened to origins")
    origin_connect_failures: int = _count("connections to origins that failed or took too long")
    origin_connects_refused: int = _count("connections to origins not opened, because the address is greenroom's own or link-local")
    origin_connections_open: int = _count("open connections to origins", gauge=True)
    origin_shares_used_up: int = _count(
        "requests that had to wait, or got 503, because their client, ticket or kind had its share of the connections to an origin"
    )
    origin_retries: int = _count("requests sent again because the origin had closed a reused connection")
    origin_invalid: int = _count("responses of origins that were not valid HTTP")
    origin_answers: list[int] = field(
        default_factory=lambda: [0] * 6, metadata={HELP: "responses of origins by the first digit of the status"}
    )
    origin_wait_seconds: float = _count("seconds from the first byte of a request to an origin until the head of its answer, summed up")
    tunnels: int = _count("WebSocket tunnels opened")
    tunnels_refused: int = _count("WebSockets refused because of a limit of tunnels")
    tunnels_open: int = _count("open WebSocket tunnels", gauge=True)
    streams_closed: int = _count("WebSockets, responses and uploads closed because their session had ended")
    bytes_in: int = _count("bytes of request heads, bodies and tunnels sent to origins")
    bytes_out: int = _count("bytes of responses and tunnels sent to visitors")

    def described(self) -> Iterator[tuple[str, str, bool, float]]:
        """Name, help, whether it is a gauge, and the value of every count; `origin_1xx` to `origin_5xx` for the answers."""
        for item in fields(self):
            text = item.metadata[HELP]
            if item.name != "origin_answers":
                yield item.name, text, item.metadata[GAUGE], getattr(self, item.name)
                continue
            for digit in range(1, 6):
                yield f"origin_{digit}xx", f"responses of origins with status {digit}xx", False, self.origin_answers[digit]
