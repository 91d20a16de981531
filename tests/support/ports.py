"""Ports for servers that tests start and that cannot be given a socket.

A port that the kernel chooses (port 0) and that is closed again may be taken before the server
listens: by another test that lets the kernel choose, or by any connection of this machine, which
needs one too. So these are taken from below the range that the kernel chooses from, at random, and
never twice in a process. Each worker of a run has ports of its own, also for a server that is
stopped and started again.
"""

import os
import random
import socket
import threading
from pathlib import Path

LOWEST = 10_240
"""Above 10080, to which browsers do not connect."""
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
ENOUGH = 5_000
"""Where the kernel chooses from so low a port on that fewer are below, they are taken from among
its own.
"""

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = max(WORKER + 1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))

_given: set[int] = set()
_by_turns = threading.Lock()
_random = (
    random.SystemRandom()
)  # hypothesis sets the seed of the other one, and workers would choose the same


def free_port(and_at: int = 0) -> int:
    """A port where no program listens; with `and_at` none listens that much higher either.

    For a port that refuses connections see the fixture `refusing_port`.
    """
    below = int(RANGE.read_text().split()[0]) - 1 - and_at
    highest = below if below > LOWEST + ENOUGH else 65_535 - and_at
    with _by_turns:
        for _ in range(1_000):
            port = LOWEST + WORKER + WORKERS * _random.randrange((highest - LOWEST) // WORKERS)
            if port not in _given and _is_free(port) and (not and_at or _is_free(port + and_at)):
                _given.update({port, port + and_at})
                return port
    raise AssertionError(f"no free port between {LOWEST} and {highest}")


def _is_free(port: int) -> bool:
    if port in _given:
        return False
    with socket.socket() as sock:
        try:
            sock.bind(("", port))  # on every address: some servers listen on all of them
        except OSError:
            return False
    return True
