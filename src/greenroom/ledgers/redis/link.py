"""The URL of a Redis: one server, a master that Sentinels know, or a cluster; over TCP, TLS or a
socket file.

| URL | means |
|---|---|
| `redis://[user:password@]host[:port][/db]`, `unix://[user:password@]/path?db=0` | one server |
| `redis+sentinel://[user:password@]host[:port],host[:port].../service[/db]` | the master that these
Sentinels name |
| `redis+cluster://[user:password@]host[:port],host[:port]...` | a cluster, reached through any of
these |

`rediss` instead of `redis` is TLS. Options: `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile` (paths),
`ssl_check_hostname`, `ssl_cert_reqs`; where Sentinels differ, `sentinel_username` and
`sentinel_password`.
"""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from greenroom.errors import InvalidConfig, Problem

if TYPE_CHECKING:
    from greenroom.ledgers.redis.connect import Client

PORT, SENTINEL_PORT = 6379, 26379
OPTIONS = frozenset(
    (
        "ssl_ca_certs",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_check_hostname",
        "ssl_cert_reqs",
        "sentinel_username",
        "sentinel_password",
        "db",
    )
)
_URL = re.compile(r"(?P<scheme>[^:/?#]*)://(?P<hosts>[^/?#]*)(?P<path>[^?#]*)\??(?P<query>[^#]*)")
"""`urlsplit` wants one host, and refuses lists with an IPv6 address."""

_FORMS = "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"


class Link:
    def __init__(self, url: str, pointer: str = "redis") -> None:
        """Raises InvalidConfig with `pointer`."""
        parts = _URL.match(url)
        scheme, kind = _form(parts["scheme"]) if parts else ("", "")
        if not parts or not scheme:
            raise InvalidConfig([Problem(pointer, f"must begin with {_FORMS}")])
        problems: list[str] = []
        login, _, hosts = parts["hosts"].rpartition("@")
        path = parts["path"]
        steps = [unquote(step) for step in path.strip("/").split("/") if step]
        self._kind, self._hosts, self._service = kind, list[tuple[str, int]](), ""
        self._options = _options(login, parts["query"], problems)
        if scheme == "rediss":
            self._options["ssl"] = True
        if scheme == "unix":
            self._options["unix_socket_path"] = unquote(path)
            steps = []
            problems += [] if path else ["must name a socket file: unix:///run/redis.sock"]
        else:
            port = SENTINEL_PORT if kind == "sentinel" else PORT
            self._hosts = [_address(one, port, problems) for one in hosts.split(",")]
        if kind == "sentinel":
            self._service = steps.pop(0) if steps else ""
        database = str(steps[0] if steps else self._options.get("db", "0"))
        problems += self._problems(database)
        if problems:
            raise InvalidConfig([Problem(pointer, reason) for reason in problems])
        self._options["db"] = int(database)
        self._shown = f"{parts['scheme']}://{hosts}{path}"
        self._url = url

    def _problems(self, database: str) -> list[str]:
        found = []
        if self._kind == "sentinel" and not self._service:
            found.append(
                "must name the service behind the Sentinels: redis+sentinel://host:26379/mymaster"
            )
        if not self._kind and len(self._hosts) > 1:
            found.append("names several hosts: use redis+sentinel:// or redis+cluster://")
        if not database.isdigit() or (self._kind == "cluster" and int(database)):
            found.append("the database must be a number, and 0 in a cluster")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Link) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __repr__(self) -> str:
        return self._shown

    def __str__(self) -> str:
        return self._shown

    def client(self, timeout_s: float) -> "Client":
        """Decodes nothing, never repeats a command. Make it inside the event loop."""
        # only where there is a Redis: importing the library takes a fifth of a start
        from greenroom.ledgers.redis.connect import connect

        return connect(self._kind, self._hosts, self._service, self._options, timeout_s)


def _form(written: str) -> tuple[str, str]:
    scheme, _, kind = written.lower().partition("+")
    known = scheme == "unix" and not kind
    known = known or (scheme in ("redis", "rediss") and kind in ("", "sentinel", "cluster"))
    return (scheme, kind) if known else ("", "")


def _options(login: str, query: str, problems: list[str]) -> dict[str, Any]:
    asked: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if asked.keys() - OPTIONS:
        problems.append(f"has unknown options: {', '.join(sorted(asked.keys() - OPTIONS))}")
    if "ssl_check_hostname" in asked:
        asked["ssl_check_hostname"] = asked["ssl_check_hostname"].lower() in ("1", "true", "yes")
    user, _, password = login.partition(":")
    return {
        "username": unquote(user) or None,
        "password": unquote(password) or None,
        "protocol": 2,
        **asked,
    }


def _address(text: str, port: int, problems: list[str]) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname:
            return parts.hostname, parts.port or port
    except ValueError:
        pass
    problems.append(f"has no host and port in {text!r}" if text else "must name a host")
    return "", port
