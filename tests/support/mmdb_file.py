"""Writes small .mmdb files, as the published format says, so that tests need no one's data."""

import struct
from ipaddress import ip_network
from typing import Any, NamedTuple

MAGIC = b"\xab\xcd\xefMaxMind.com"
SEPARATOR = bytes(16)


class Sized(NamedTuple):
    """A whole number that must be of one size: 5 is 16 bits, 9 is 64; others have 32."""

    kind: int
    value: int


def mmdb(records: dict[str, Any], kind: str = "Test-City") -> bytes:
    """A database of IPv6 (IPv4 networks stand below ::/96) in which each network has its record."""
    nodes: list[list[Any]] = [[None, None]]
    data = b""
    for text, record in records.items():
        network = ip_network(text)
        width = 128 if network.version == 6 else 32
        bits = ("" if width == 128 else "0" * 96) + f"{int(network.network_address):0{width}b}"[
            : network.prefixlen
        ]
        at = 0
        for bit in map(int, bits[:-1]):
            if nodes[at][bit] is None:
                nodes.append([None, None])
                nodes[at][bit] = len(nodes) - 1
            at = nodes[at][bit]
        nodes[at][int(bits[-1])] = ("data", len(data))
        data += encoded(record)
    count = len(nodes)

    def pointer(entry: Any) -> int:
        return (
            count if entry is None else count + 16 + entry[1] if isinstance(entry, tuple) else entry
        )

    tree = b"".join(struct.pack(">II", *map(pointer, node)) for node in nodes)
    about = {
        "node_count": count,
        "record_size": Sized(5, 32),
        "ip_version": Sized(5, 6),
        "database_type": kind,
        "languages": ["en"],
        "binary_format_major_version": Sized(5, 2),
        "binary_format_minor_version": Sized(5, 0),
        "build_epoch": Sized(9, 1),
        "description": {"en": "made by a test"},
    }
    return tree + SEPARATOR + data + MAGIC + encoded(about)


def encoded(value: Any) -> bytes:
    if isinstance(value, bool):
        return bytes([value, 7])
    if isinstance(value, int | Sized):
        kind, value = value if isinstance(value, Sized) else (6, value)
        raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
        return head(kind, len(raw)) + raw
    if isinstance(value, float):
        return head(3, 8) + struct.pack(">d", value)
    if isinstance(value, str):
        raw = value.encode()
        return head(2, len(raw)) + raw
    if isinstance(value, list):
        return head(11, len(value)) + b"".join(map(encoded, value))
    return head(7, len(value)) + b"".join(encoded(part) for pair in value.items() for part in pair)


def head(kind: int, size: int) -> bytes:
    assert size < 29 + 256
    rest = b"" if size < 29 else bytes([size - 29])
    size = min(size, 29)
    return (bytes([kind << 5 | size]) if kind < 8 else bytes([size, kind - 7])) + rest
