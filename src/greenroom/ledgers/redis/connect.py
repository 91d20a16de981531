"""Clients of redis-py: one server, a master behind Sentinels, a cluster."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import RedisClusterException

Client = Redis | RedisCluster


class Cluster(RedisCluster):
    """Raises a RedisError for a cluster that cannot be reached or a slot without a server: the
    library's own exception is none.
    """

    async def initialize(self, *places: Any, **names: Any) -> RedisCluster:
        try:
            return await super().initialize(*places, **names)
        except RedisClusterException as error:
            raise NotConnected(str(error)) from error

    async def execute_command(self, *command: Any, **options: Any) -> Any:
        try:
            return await super().execute_command(*command, **options)
        except RedisClusterException as error:
            raise NotConnected(str(error)) from error


CONNECTIONS_MAX = 16

Hosts = Sequence[tuple[str, int]]


def connect(
    kind: str, hosts: Hosts, service: str, options: Mapping[str, Any], timeout_s: float
) -> Client:
    """`kind`: "", "sentinel" or "cluster"."""
    patient = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
    }
    return _MAKERS[kind](hosts, service, {**options, **patient, "max_connections": CONNECTIONS_MAX})


def _server(hosts: Hosts, _service: str, options: dict[str, Any]) -> Client:
    place: dict[str, Any] = {"host": hosts[0][0], "port": hosts[0][1]} if hosts else {}
    return Redis(**place, **options)


def _sentinel(hosts: Hosts, service: str, options: dict[str, Any]) -> Client:
    names = {"username": "sentinel_username", "password": "sentinel_password"}
    own = {name: options.pop(theirs, None) or options[name] for name, theirs in names.items()}
    left_out = ("db", "username", "password", "max_connections")
    sentinels = {key: value for key, value in options.items() if key not in left_out} | own
    make: Callable[..., Any] = Sentinel
    master: Redis = make(list(hosts), sentinel_kwargs=sentinels).master_for(service, **options)
    return master


def _cluster(hosts: Hosts, _service: str, options: dict[str, Any]) -> Client:
    options.pop("db")
    nodes = [ClusterNode(host, port) for host, port in hosts]
    return Cluster(startup_nodes=nodes, **options, require_full_coverage=False)


_MAKERS: dict[str, Callable[[Hosts, str, dict[str, Any]], Client]] = {
    "": _server,
    "sentinel": _sentinel,
    "cluster": _cluster,
}
