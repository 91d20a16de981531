"""Shared ledgers: the Redis of this data center, the global Redis, and the list of data centers."""

import os
import re
import secrets
import socket
from dataclasses import dataclass, field

from greenroom.errors import InvalidConfig, Problem
from greenroom.ledgers.redis.link import Link
from greenroom.settings.process import NAME, NAME_MAX, NAME_PATTERN, Server


@dataclass(frozen=True, slots=True)
class SharedLedgers:
    """`data_centers` includes this one."""

    redis: Link
    global_redis: Link
    data_center: str
    data_centers: tuple[str, ...] = field(compare=False)  # may change while running
    fence_s: int = 0

    def __str__(self) -> str:
        return f"{self.redis} (data center {self.data_center}, all of them in {self.global_redis})"


def read_shared(server: Server, problems: list[Problem]) -> SharedLedgers | None:
    found: list[Problem] = []
    name, names = server.datacenter, server.datacenters or (server.datacenter,)
    found += [
        Problem(pointer, f"must be {NAME}, not {text!r}")
        for pointer, text in [
            ("datacenter", name),
            *((f"datacenters[{index}]", text) for index, text in enumerate(server.datacenters)),
        ]
        if not _is_name(text)
    ]
    if name not in names:
        found.append(Problem("datacenters", f"must include this data center, {name!r}"))
    texts = [text for text in names if isinstance(text, str)]
    if len(set(texts)) < len(texts):
        found.append(Problem("datacenters", "must not contain duplicates"))
    if server.redis and len(names) > 1 and not server.global_redis:
        found.append(Problem("global_redis", "is required when there are several data centers"))
    if server.global_redis and not server.datacenters:
        reason = "is required with global_redis: without the list each data center admits up to the limits"
        found.append(Problem("datacenters", reason))
    if not server.redis:
        alone = [key for key in ("global_redis", "datacenters") if getattr(server, key)]
        found += [
            Problem(key, "needs redis: the Redis server of this data center") for key in alone
        ]
    links = {key: _link(key, getattr(server, key), found) for key in ("redis", "global_redis")}
    problems += found
    redis = links["redis"]
    return (
        None
        if found or redis is None
        else SharedLedgers(
            redis,
            links["global_redis"] or redis,
            name,
            tuple(names),
            server.datacenter_fence_seconds,
        )
    )


def _link(key: str, url: str, problems: list[Problem]) -> Link | None:
    try:
        return Link(url, key) if url else None
    except InvalidConfig as error:
        problems += error.problems
        return None


def _is_name(text: object) -> bool:
    return (
        isinstance(text, str)
        and len(text) <= NAME_MAX
        and re.fullmatch(NAME_PATTERN, text) is not None
    )


def process_name() -> str:
    """Another one in each process, and after each start."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
