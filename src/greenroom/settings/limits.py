"""The limits of one visitor, connection or origin: every number that an outsider could otherwise
grow.
"""

from dataclasses import dataclass

from greenroom.model.fields import check_value, spec, specs

KIB = 1024
MIB = 1024 * KIB

HEADER_LINES_MAX = 100
"""Browsers send about twenty lines, and proxies add a handful."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Whole numbers; times in seconds, sizes in bytes. Build with `check` clean."""

    head_bytes: int = spec(
        "Largest head of a request; then 431.",
        32 * KIB,
        unit="bytes",
        low=KIB,
        high=MIB,
    )
    header_lines: int = spec(
        "Most header lines in one request; then 431.",
        HEADER_LINES_MAX,
        low=8,
        high=HEADER_LINES_MAX,
    )
    url_bytes: int = spec(
        "Longest request line; then 414.", 8 * KIB, unit="bytes", low=256, high=MIB
    )
    body_bytes: int = spec(
        "Largest request body; then 413. 0 allows any size: bodies are streamed, never stored.",
        0,
        unit="bytes",
        low=0,
    )
    body_first_bytes: int = spec(
        "Part of a request body that is read before a connection to the origin is taken.",
        64 * KIB,
        unit="bytes",
        low=0,
        high=MIB,
    )
    chunk_bytes: int = spec(
        "Lowest average size of the chunks of a request body, checked after the first thousand;"
        " then 400. 0 allows any size.",
        16,
        unit="bytes",
        low=0,
        high=64 * KIB,
    )
    drain_bytes: int = spec(
        "Most of an unwanted request body that is discarded to keep the connection open.",
        64 * KIB,
        unit="bytes",
        low=0,
        high=MIB,
    )
    pipelined_bytes: int = spec(
        "Bytes of later requests (or of an unread body) kept per connection.",
        64 * KIB,
        unit="bytes",
        low=KIB,
        high=MIB,
    )
    write_bytes: int = spec(
        "Unsent bytes kept per connection and direction. A fast sender may add one read (256 KiB).",
        64 * KIB,
        unit="bytes",
        low=KIB,
        high=16 * MIB,
    )
    connections: int = spec(
        "Most connections from visitors at once; then idle or stalled ones are closed, or 503. 5 KB of memory each.",
        60_000,
        low=1,
    )
    connections_per_address: int = spec(
        "Most connections from one address (or IPv6 /64) at once, but for trusted proxies; then as"
        " above. 0: no limit. A mobile network can share one address.",
        2_000,
        low=0,
    )
    requests_per_connection: int = spec(
        "Requests on one connection before it is closed.",
        100_000,
        low=1,
    )
    head_s: int = spec(
        "Time from a request's first byte to the end of its head; then 408.",
        10,
        unit="seconds",
        low=1,
    )
    keep_alive_s: int = spec("An idle connection is closed after this.", 75, unit="seconds", low=1)
    body_idle_s: int = spec(
        "Longest silence inside a request body; then 408. 5 s while others wait.",
        30,
        unit="seconds",
        low=1,
    )
    body_rate: int = spec(
        "Lowest average rate of a request body, checked from body_idle_s after its start; then"
        " 408. 0 allows any rate.",
        1_000,
        unit="bytes per second",
        low=0,
    )
    send_idle_s: int = spec(
        "Longest time a visitor may leave a response unread (see send_rate). 5 s while others wait.",
        60,
        unit="seconds",
        low=1,
    )
    send_rate: int = spec(
        "Lowest rate at which a visitor may read a response beyond the buffers, checked every"
        " send_idle_s; then the connection is closed. 0 allows any rate.",
        100,
        unit="bytes per second",
        low=0,
    )
    decision_s: int = spec(
        "Longest wait for the waiting room's decision; then the visitor is held with 503.",
        10,
        unit="seconds",
        low=1,
    )
    half_closed_s: int = spec(
        "Time left to finish the response when a visitor has closed its sending side.",
        2,
        unit="seconds",
        low=1,
    )
    linger_bytes: int = spec(
        "Most of a refused upload that is discarded so that the visitor can read the response.",
        16 * MIB,
        unit="bytes",
        low=0,
        high=1024 * MIB,
    )
    linger_s: int = spec(
        "Longest silence of a connection with unread input after the last response.",
        2,
        unit="seconds",
        low=1,
    )
    tunnel_idle_s: int = spec(
        "Longest silence of a WebSocket tunnel in both directions.",
        300,
        unit="seconds",
        low=1,
    )
    origin_connections: int = spec("Most connections to one origin.", 256, low=1, high=60_000)
    origin_address_percent: int = spec(
        "Share of the connections (and tunnels) to one origin that requests of one client address"
        " (or IPv6 /64) may have, at least 8. More wait. Without `trusted_proxies`, all visitors behind a"
        " proxy are one client.",
        50,
        unit="percent",
        low=1,
        high=100,
    )
    origin_ticket_percent: int = spec(
        "Share of the connections to one origin that requests with one ticket may have, at least 8."
        " More wait.",
        25,
        unit="percent",
        low=1,
        high=100,
    )
    origin_reserve_percent: int = spec(
        "Share of the connections (and of the tunnels) to one origin that is kept for admitted"
        " visitors of rooms; requests that no room covers wait instead.",
        25,
        unit="percent",
        low=0,
        high=90,
    )
    origin_tunnels: int = spec(
        "Most WebSocket tunnels to one origin, beside origin_connections; then 503.",
        1_000,
        low=1,
        high=60_000,
    )
    tunnels_per_ticket: int = spec(
        "Most WebSocket tunnels to one origin with one ticket; then 503.",
        16,
        low=1,
        high=60_000,
    )
    origin_queue: int = spec(
        "Most requests waiting for a free connection to one origin; then 503.", 1_000, low=0
    )
    origin_queue_s: int = spec(
        "Longest wait for a free connection to the origin; then 503.", 10, unit="seconds", low=1
    )
    origin_connect_s: int = spec(
        "Longest time to connect to the origin (DNS, TCP and TLS); then 504.",
        5,
        unit="seconds",
        low=1,
    )
    origin_read_s: int = spec(
        "Longest silence of the origin before or during its response; then 504, or it is cut off.",
        60,
        unit="seconds",
        low=1,
    )
    origin_idle_s: int = spec(
        "Longest life of an unused connection to the origin: below the 5 s of common application"
        " servers. A shorter `Keep-Alive: timeout` takes precedence.",
        4,
        unit="seconds",
        low=1,
    )
    origin_head_bytes: int = spec(
        "Largest head of an origin's response; then 502.",
        64 * KIB,
        unit="bytes",
        low=KIB,
        high=MIB,
    )
    origin_hints: int = spec(
        "Most interim responses (1xx) before the final one; then 502.", 16, low=1, high=1000
    )

    def problems(self) -> list[str]:
        """Everything out of bounds, each as one sentence naming the field."""
        found = (
            check_value(name, getattr(self, name), int, rule)
            for name, rule in specs(Limits).items()
        )
        return [str(problem) for problem in found if problem]
