"""Addresses, networks and origins as operators write them, and their problems."""

import asyncio
import contextlib
import ipaddress
import os
import re
import socket
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from greenroom.errors import Problem
from greenroom.gateway.origin.address import ZONE_POLICY
from greenroom.gateway.wire.forwarded_head import NEVER_KEPT
from greenroom.model.fields import is_printable
from greenroom.model.route import HOST
from greenroom.outbound import Guard, OutboundRefused, read_target
from greenroom.outbound.guard import Listening
from greenroom.outbound.policy import unwrapped
from greenroom.request.arrival import IS_NAME, read_host
from greenroom.settings.process import SOCKET_FILE, Address, Server

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\[\]:/\s]*)):(?P<port>\d{1,5})")
HEADER_NAME_MAX = 100

SOCKET_PATH_MAX = 107
"""Bytes in the path of a Unix socket (108 with the NUL, on Linux)."""

_DEFAULT_PORTS = {"http": 80, "https": 443}

EXPORTER = "opentelemetry.exporter"


def address_of(text: str) -> Address | None:
    """`127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080` (every address) or `unix:/a/path`;
    else None.
    """
    if text.startswith(SOCKET_FILE):
        path = text.removeprefix(SOCKET_FILE)
        return None if _path_problem(path) else Address("", 0, path)
    found = _ADDRESS.fullmatch(text)
    if not found or int(found["port"]) > 65_535:
        return None
    host = found["six"] or found["host"] or "0.0.0.0"  # noqa: S104  the operator wrote `:port`, which asks for every address
    if found["six"] and not _is_ip(host):
        return None
    if not found["six"] and not _is_ip(host) and not re.fullmatch(HOST, host.lower()):
        return None
    return Address(host, int(found["port"]))


def address_problems(pointer: str, text: str) -> list[Problem]:
    if address_of(text):
        return []
    if text.startswith(SOCKET_FILE):
        return [Problem(pointer, _path_problem(text.removeprefix(SOCKET_FILE)))]
    return [
        Problem(
            pointer,
            f"must be address:port such as 127.0.0.1:8080 or [::1]:8080, or unix:/path/of/a.sock, not {text[:60]!r}",
        )
    ]


def _path_problem(path: str) -> str:
    """Empty when the path can be used."""
    size = len(path.encode("utf-8", "replace"))
    if not path.startswith("/") or path.endswith("/") or not is_printable(path):
        return f"must be unix: and the whole path of a file, such as unix:/run/greenroom/decide.sock, not {path[:60]!r}"
    return (
        f"must have a path of at most {SOCKET_PATH_MAX} bytes, not {size}: {path[:60]!r}..."
        if size > SOCKET_PATH_MAX
        else ""
    )


def decide_problems(server: Server) -> list[Problem]:
    if not server.decide:
        return []
    found = address_problems("decide", server.decide)
    if not server.trusted_proxies and not server.decide.startswith(SOCKET_FILE):
        found.append(
            Problem(
                "trusted_proxies",
                "is required with decide: the addresses of the proxies that may ask for decisions",
            )
        )
    return found


def network_problems(pointer: str, text: object) -> list[Problem]:
    if not isinstance(text, str):
        return [Problem(pointer, f"must be a string such as 10.0.0.0/8, not {text!r}")]
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        return [Problem(pointer, f"must be an address or a network such as 10.0.0.0/8: {error}")]
    return []


def trusted_header_problems(pointer: str, name: object) -> list[Problem]:
    """One entry of `trusted_headers`: one that the gateway writes itself cannot be kept."""
    if (
        not isinstance(name, str)
        or not IS_NAME.fullmatch(name.lower().encode())
        or len(name) > HEADER_NAME_MAX
    ):
        return [
            Problem(
                pointer, f"must be a header name such as X-Forwarded-Prefix, not {str(name)[:60]!r}"
            )
        ]
    if name.lower().encode() in NEVER_KEPT:
        return [
            Problem(
                pointer,
                f"must not be {name}: greenroom writes it itself, or it is meant for this connection only",
            )
        ]
    return []


def default_host_problems(host: str) -> list[Problem]:
    if not host or read_host(host.encode("ascii", "replace")):
        return []
    return [
        Problem("default_host", f"must be a host name with an optional port, not {host[:60]!r}")
    ]


def origin_problems(pointer: str, url: str) -> list[Problem]:
    """Only scheme, host and port: paths are sent on as they come."""
    wanted = f"must be http://host[:port] or https://host[:port], not {url[:60]!r}"
    if url.startswith(SOCKET_FILE):
        return [Problem(pointer, f"{wanted}: only the configuration file can name a Unix socket")]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return [Problem(pointer, wanted)]
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0 or url != url.strip():
        return [Problem(pointer, wanted)]
    if not _is_ip(parts.hostname) and not re.fullmatch(HOST, parts.hostname):
        return [Problem(pointer, wanted)]
    if parts.username is not None or parts.password is not None:
        return [
            Problem(
                pointer,
                "must not contain a user name or password: configure credentials in your application",
            )
        ]
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return [
            Problem(
                pointer,
                f"must end after the port, because requests keep their own path ({url[:60]!r})",
            )
        ]
    return []


def socket_origin_problems(pointer: str, url: str, listeners: Collection[str]) -> list[Problem]:
    """`listeners` are greenroom's own, as written in the operator's file."""
    path = url.removeprefix(SOCKET_FILE)
    if problem := _path_problem(path):
        return [Problem(pointer, problem)]
    for written in listeners:
        own = written.removeprefix(SOCKET_FILE)
        if written.startswith(SOCKET_FILE) and os.path.normpath(own) == os.path.normpath(path):
            return [
                Problem(
                    pointer,
                    f"must not be greenroom's own socket ({url[:60]}), because requests would loop",
                )
            ]
    return []


def loop_problems(pointer: str, url: str, listeners: Mapping[str, Address]) -> list[Problem]:
    """Refuses a well-formed origin that is one of our own listeners: requests would loop."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    for key, address in listeners.items():
        if (
            not address.path
            and port == address.port
            and _reaches(parts.hostname or "", address.host)
        ):
            return [
                Problem(
                    pointer,
                    f"must not be greenroom's own address: {key} is {address}, so requests would loop",
                )
            ]
    return []


def store_problems(pointer: str, url: str) -> list[Problem]:
    """Without connecting to the store."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and rest.strip("/"):
        return []
    if scheme in ("postgresql", "postgres") and rest.partition("/")[2]:
        return []
    return [Problem(pointer, "must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")]


ANALYTICS_OFF = "off"


def analytics_problems(pointer: str, written: str) -> list[Problem]:
    """Without connecting there."""
    scheme, _, rest = written.partition("://")
    if written in ("", ANALYTICS_OFF) or (
        scheme in ("clickhouse", "clickhouses") and rest.partition("/")[0]
    ):
        return []
    allowed = f"{ANALYTICS_OFF} or clickhouse://USER:PASSWORD@HOST:PORT/DATABASE"
    return [Problem(pointer, f"must be {allowed}, not {store_shown(written)[:100]!r}")]


def store_url(url: str, folder: Path) -> str:
    """Makes the path of a file absolute, from `folder`."""
    scheme, _, rest = url.partition(":///")
    return f"sqlite:///{(folder / rest).absolute()}" if scheme == "sqlite" else url


def store_shown(url: str) -> str:
    """Without the password."""
    return re.sub(r"(?<=://)([^/@:]*):[^/]*@", r"\1:***@", url)


def listener_problems(control: Address, listen: Address) -> list[Problem]:
    if control.path or listen.path:
        return []  # see `socket_problems`
    if (
        control.port != listen.port
        or not control.port
        or not (_reaches(control.host, listen.host) or _reaches(listen.host, control.host))
    ):
        return []
    return [
        Problem(
            "control",
            f"must not be the address for visitors ({listen}): the control listener is never public",
        )
    ]


def is_behind_proxy(server: Server) -> bool:
    """Whether a proxy in front may say how visitors come."""
    return bool(server.trusted_proxies) or any(
        text.startswith(SOCKET_FILE) for text in (server.listen, server.decide)
    )


def socket_problems(server: Server) -> list[Problem]:
    found, taken = [], dict[str, str]()
    for key in ("listen", "control", "decide", "status_listen"):
        text = getattr(server, key)
        if text.startswith(SOCKET_FILE) and taken.setdefault(text, key) != key:
            found.append(Problem(key, f"must not be the socket of {taken[text]} ({text[:60]})"))
    return found


def socket_notes(server: Server) -> list[str]:
    used = any(
        getattr(server, key).startswith(SOCKET_FILE)
        for key in ("listen", "control", "decide", "status_listen")
    )
    if not used or not int(server.socket_mode, 8) & 0o002:
        return []
    return [
        "socket_mode: every user of this machine can open the Unix sockets, and is trusted as a proxy there"
    ]


def exposure_notes(control: Address, *, private: bool) -> list[str]:
    """Where the control listener is. `private`: it has TLS, or there are proxies that may have."""
    if control.path or _is_local(control.host):
        return []
    notes = [
        f"control: every client that can reach {control} can read /status and /metrics; there is no password"
    ]
    if not private:
        notes.append(
            f"control: {control} is reached without encryption, so the dashboard lets people sign in from this machine only, and tokens of "
            "the API cross the network in plain text; set [control_tls], or put a proxy with HTTPS in front and its address into "
            "trusted_proxies"
        )
    return notes


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _reaches(host: str, listening: str) -> bool:
    """Whether `host` reaches a listener on `listening` of the same machine, as far as the texts
    tell.
    """
    host, listening = _usual(host), _usual(listening)
    if host == listening:
        return True
    if not (_is_local(host) or _is_any(host)):
        return False
    return _is_local(listening) or _is_any(listening)


def _usual(host: str) -> str:
    """Lower case; addresses in the usual form (`127.1`, `0x7f.1`, `::ffff:127.0.0.1`)."""
    with contextlib.suppress(ValueError):
        return str(unwrapped(ipaddress.ip_address(host)))
    with contextlib.suppress(OSError, UnicodeError):
        return socket.inet_ntoa(socket.inet_aton(host))
    return host.lower().removesuffix(".")


def _is_local(host: str) -> bool:
    return host.lower() == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def _is_any(host: str) -> bool:
    return _is_ip(host) and ipaddress.ip_address(host).is_unspecified


RESOLVE_S = 3.0
"""How long saving a zone waits for the name of its origin."""


def zone_origin_problems(listeners: Mapping[str, Address], pointer: str, url: str) -> list[Problem]:
    """Checks a zone's origin as written; what its name resolves to is checked when saving
    (`resolved_origin_problems`) and for each connection.
    """
    wrong = origin_problems(pointer, url) or loop_problems(pointer, url, listeners)
    if wrong:
        return wrong
    try:
        refused = ZONE_POLICY.target_problem(read_target(url))
    except OutboundRefused as error:
        refused = str(error)
    return [Problem(pointer, refused)] if refused else []


def resolved_origin_problems(
    listeners: Mapping[str, Address], pointer: str, url: str, listening: Listening
) -> list[Problem]:
    """As `zone_origin_problems`, and what the name resolves to now, within RESOLVE_S: call it in a
    thread. `listening` returns the listeners of every process. An unresolvable name is no problem:
    it may resolve later.
    """
    wrong = zone_origin_problems(listeners, pointer, url)
    if wrong:
        return wrong
    guard = Guard(
        ZONE_POLICY,
        listening=lambda: [
            *((address.host, address.port) for address in listeners.values()),
            *listening(),
        ],
    )
    try:
        asyncio.run(asyncio.wait_for(guard.check(read_target(url)), RESOLVE_S))
    except OutboundRefused as error:
        return [Problem(pointer, str(error))]
    except (OSError, TimeoutError):
        return []
    return []


def collector_problems(pointer: str, endpoint: str) -> list[Problem]:
    """Of an OpenTelemetry collector, for `[tracing]` and `[metrics]`."""
    if not endpoint:
        return []
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        return [
            Problem(
                pointer,
                "must be http:// or https:// with a host, without user, query and fragment, not"
                f" {endpoint[:60]!r}",
            )
        ]
    if pointer.startswith("metrics.") and (
        find_spec("opentelemetry") is None or find_spec(EXPORTER) is None
    ):
        return [Problem(pointer, "needs greenroom's wheel with [otel]")]
    return []
