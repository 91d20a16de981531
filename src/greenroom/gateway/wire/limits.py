"""What one visitor, one connection or one origin may use up; every number that an outsider could otherwise grow is here."""

from dataclasses import dataclass

from greenroom.model.fields import check_value, spec, specs

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of the gateway. Whole numbers; times in seconds, sizes in bytes. Build with `check` clean."""

    head_bytes: int = spec(
        "Largest head of a request: request line and headers. 431 beyond it. Browsers send 1 to 4 KiB; cookies make the rest.",
        32 * KIB,
        unit="bytes",
        low=KIB,
        high=MIB,
    )
    header_lines: int = spec("Most header lines in one request. 431 beyond it. The reader itself takes at most 100.", 100, low=8, high=100)
    url_bytes: int = spec("Longest request line. 414 beyond it.", 8 * KIB, unit="bytes", low=256, high=MIB)
    body_bytes: int = spec(
        "Largest request body; 413 beyond it. 0 means any size: bodies are streamed, never stored.", 0, unit="bytes", low=0
    )
    drain_bytes: int = spec(
        "Most of an unwanted request body that is read and thrown away to keep the connection; a larger one closes it.",
        64 * KIB,
        unit="bytes",
        low=0,
        high=MIB,
    )
    pipelined_bytes: int = spec(
        "Bytes of later requests (or of a body nobody reads yet) kept per connection before reading from it pauses.",
        64 * KIB,
        unit="bytes",
        low=KIB,
        high=MIB,
    )
    write_bytes: int = spec(
        "Unsent bytes kept per connection and direction before the sender is paused. A fast sender may add one read (256 KiB).",
        64 * KIB,
        unit="bytes",
        low=KIB,
        high=16 * MIB,
    )
    connections: int = spec("Most visitors' connections at once; beyond it 503 and close. About 5 KB of memory each.", 60_000, low=1)
    connections_per_address: int = spec(
        "Most connections of one address at once; beyond it 503 and close. Not counted for trusted proxies. 0 means no limit. "
        "A company or a mobile network can stand behind one address, so this only stops a single hoarder.",
        2_000,
        low=0,
    )
    requests_per_connection: int = spec(
        "Requests on one connection before it is closed, so that long-lived ones move on to new processes.", 100_000, low=1
    )
    head_s: int = spec(
        "From a request's first byte to the end of its head; 408 beyond it. Stops slow-head attacks.", 10, unit="seconds", low=1
    )
    keep_alive_s: int = spec("An idle connection is closed after this.", 75, unit="seconds", low=1)
    body_idle_s: int = spec("Longest silence inside a request body; 408 beyond it.", 30, unit="seconds", low=1)
    body_rate: int = spec(
        "Slowest a request body may come on average, judged from body_idle_s after its start; 408 below it. 0 allows any. "
        "Stops bodies of one byte at a time, which would hold origin connections for ever.",
        100,
        unit="bytes per second",
        low=0,
    )
    send_idle_s: int = spec(
        "Longest time a visitor may leave an answer unread (see send_rate); then the connection is cut.", 60, unit="seconds", low=1
    )
    send_rate: int = spec(
        "Slowest a visitor may take an answer that does not fit into the buffers, judged every send_idle_s; below it the connection is "
        "cut. 0 allows any. Stops readers of one byte at a time, which would hold origin connections for ever.",
        100,
        unit="bytes per second",
        low=0,
    )
    decision_s: int = spec("Longest wait for the waiting room's decision; 503 beyond it, the visitor is held.", 10, unit="seconds", low=1)
    half_closed_s: int = spec(
        "Time left for the answer when a visitor has closed its sending side. Usually it has gone, rarely it still reads.",
        2,
        unit="seconds",
        low=1,
    )
    linger_s: int = spec(
        "Time given to read the last answer before a connection with unread input is closed; closing at once would destroy the answer.",
        2,
        unit="seconds",
        low=1,
    )
    tunnel_idle_s: int = spec(
        "A WebSocket tunnel silent in both directions for this long is closed; servers ping more often.", 300, unit="seconds", low=1
    )
    origin_connections: int = spec("Most connections to one origin.", 256, low=1, high=60_000)
    origin_queue: int = spec("Most requests waiting for a free connection to one origin; beyond it 503.", 1_000, low=0)
    origin_queue_s: int = spec("Longest wait for a free connection to the origin; 503 beyond it.", 10, unit="seconds", low=1)
    origin_connect_s: int = spec("Longest time to connect to the origin (DNS, TCP and TLS); 504 beyond it.", 5, unit="seconds", low=1)
    origin_read_s: int = spec(
        "Longest silence of the origin while its answer is awaited or under way; 504, or a cut answer if it had begun.",
        60,
        unit="seconds",
        low=1,
    )
    origin_idle_s: int = spec(
        "An unused connection to the origin is closed after this. Shorter than the 5 s of common application servers, so that we "
        "close first and no request meets a connection that is just being closed. A shorter `Keep-Alive: timeout` counts.",
        4,
        unit="seconds",
        low=1,
    )
    origin_head_bytes: int = spec("Largest head of an origin's answer; 502 beyond it.", 64 * KIB, unit="bytes", low=KIB, high=MIB)
    origin_hints: int = spec("Most interim answers (1xx) before the real one; 502 beyond it.", 16, low=1, high=1000)

    def problems(self) -> list[str]:
        """Everything out of bounds, each as one sentence naming the field; empty when all is well."""
        found = (check_value(name, getattr(self, name), int, rule) for name, rule in specs(Limits).items())
        return [str(problem) for problem in found if problem]
