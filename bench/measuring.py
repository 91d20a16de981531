"""What measuring an origin's answers adds to a forwarded request, for limits that follow the origin.

    python bench/measuring.py [--rounds 60] [--calls 20000]

`us` is the least time of a call with the arguments of real requests, less that of a function that
does nothing, which a busy machine hardly changes. Documents are measured in every mode, `fixed`
too, for /metrics; with `follow` also for the bound of requests in flight. A room of another mode than
`fixed` is looked at once a second besides (`look`).
"""

import argparse
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from browser_heads import navigating
from hot_path import Stepping, asker, heads, rooms, ticket

from greenroom.gateway.documents import Documents
from greenroom.gateway.origin.flights import Flights

INSIDE = 500
DOCUMENT_BECOMES = (
    b"Sec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document",
    b"Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image",
)


class NotMeasured(Documents):
    def answered(self, *what: Any) -> None:  # type: ignore[override]
        self.what = what


def nothing(*_what: Any) -> None: ...


def least_us(call: Callable[..., Any], what: tuple[Any, ...], rounds: int, calls: int) -> float:
    timer = timeit.Timer(lambda: call(*what))
    return min(timer.repeat(rounds, calls)) / calls * 1e6


async def measure(rounds: int, calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock = Stepping()
        _, gateway = rooms(Path(folder), 100_000, clock)
        ask, page = asker(gateway, clock), navigating()
        tickets = [ticket(answer) for answer in ask(heads(page, [b""] * INSIDE))]
        documents = heads(page, tickets)
        images = [one.replace(*DOCUMENT_BECOMES) for one in documents]
        measured, not_measured = gateway.counts.documents, NotMeasured()
        print(f"{'':10} {'us':>6}")
        for name, sent in (("document", documents), ("image", images)):
            gateway.counts.documents = not_measured
            ask(sent)
            gateway.counts.documents = measured
            what = not_measured.what
            more_us = least_us(measured.answered, what, rounds, calls) - least_us(
                nothing, what, rounds, calls
            )
            forward, arrival, status, seconds = what[:4]
            followed = forward, arrival, status, seconds, 7
            also_us = least_us(Flights().answered, followed, rounds, calls) - least_us(
                nothing, what, rounds, calls
            )
            print(f"{name:10} {more_us:6.2f}, with follow {more_us + also_us:6.2f}")
        look_us = least_us(gateway.pending_documents, (), rounds, calls // 100)
        print(f"{'look':10} {look_us:6.2f}")
        gateway.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    uvloop.run(measure(options.rounds, options.calls))


if __name__ == "__main__":
    main()
