"""Recognizes greenroom's own listeners, however their addresses are spelled."""

import os
import socket
from collections.abc import Callable, Collection
from functools import lru_cache

from greenroom.outbound.policy import IpAddress, read_address, unwrapped

ADDRESSES_REMEMBERED = 1_024

Listening = Callable[[], Collection[tuple[str, int]]]
"""(numeric address, port), `0.0.0.0` and `::` for all; for a Unix socket its file, and 0."""


def reaches_listener(address: IpAddress, port: int, listening: Collection[tuple[str, int]]) -> bool:
    found = unwrapped(address)
    for text, number in listening:
        if number != port:
            continue
        own = read_address(text)
        if own is None or own.is_unspecified:  # every address of this machine
            if is_this_machine(str(found)):
                return True
        elif unwrapped(own) == found or (
            found.is_unspecified and own.is_loopback
        ):  # systems connect `0.0.0.0` to the loopback address
            return True
    return False


def is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@lru_cache(maxsize=ADDRESSES_REMEMBERED)
def is_this_machine(address: str) -> bool:
    """A socket can be bound to it here."""
    read = read_address(address)
    if read is None or read.is_loopback or read.is_unspecified:
        return read is not None
    try:
        with socket.socket(
            socket.AF_INET if read.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM
        ) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
