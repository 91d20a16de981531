"""Health checks as configured. In the published API 0 means the default in every number; `effective`
replaces it, so records hold effective values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import NAME_WORDS, FormSpec, field_problems, spec, vars_of, wrong_fields

TYPES = ("HTTP", "HTTPS", "TCP")
REGIONS = (
    "WNAM",
    "ENAM",
    "WEU",
    "EEU",
    "NSAM",
    "SSAM",
    "OC",
    "ME",
    "NAF",
    "SAF",
    "IN",
    "SEAS",
    "NEAS",
)
ALL_REGIONS = "ALL_REGIONS"
STATUSES = ("unknown", "healthy", "unhealthy", "suspended")

CHECKS_MAX = 10_000
"""As many as one process can run every minute (`bench/health_checks.py`)."""

CODES_MAX = 20
HEADERS_MAX = 20
"""With HEADER_VALUE_MAX keeps a request below 64 KB."""
HEADER_VALUE_MAX = 2_048
BODY_READ = 10_240
"""Compared with the expected text, as published."""
BODY_TIMED = 4 << 20
"""Read for its time and dropped: few pages are larger, and a probe stays cheap."""

PORTS = {"HTTP": 80, "HTTPS": 443, "TCP": 80}

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_ADDRESS = re.compile(rf"(?=.{{1,253}}\.?$){_LABEL}(?:\.{_LABEL})*\.?")
_CODE = re.compile(r"[1-5](?:[0-9]{2}|[xX]{2})")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_PATH = re.compile(r"/[\x21\x22\x24-\x7e]*")
NOT_TO_BE_SET = frozenset(
    "user-agent connection content-length transfer-encoding upgrade keep-alive te trailer expect".split()
)
"""Set by the probe itself, or part of the message's framing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCheck:
    method: str = spec(
        "method of the request",
        "GET",
        choices=("GET", "HEAD"),
        form=FormSpec("more", "Method", "HEAD asks for the page without its content."),
    )
    path: str = spec(
        "path and query to request", "/", low=1, high=2_048, form=FormSpec("request", "Path")
    )
    port: int = spec(
        "port; 0 = 80 for HTTP, 443 for HTTPS",
        0,
        low=0,
        high=65_535,
        form=FormSpec("request", "Port"),
    )
    expected_codes: tuple[str, ...] = spec(
        "expected status codes: `200` (also when empty), or `2xx` for a whole class",
        (),
        high=CODES_MAX,
        form=FormSpec("request", "Expected status codes"),
    )
    expected_body: str = spec(
        "text that must occur in the first 10 KB of the body; case is ignored",
        "",
        high=BODY_READ,
        form=FormSpec("request", "Text in the answer"),
    )
    follow_redirects: bool = spec(
        "follow redirects and check the last response",
        False,
        form=FormSpec("more", "Follow redirects"),
    )
    allow_insecure: bool = spec(
        "accept any certificate",
        False,
        form=FormSpec(
            "more",
            "Accept any certificate",
            "Also one that has expired, or is for another name.",
        ),
    )
    header: dict[str, tuple[str, ...]] | None = spec(
        "headers to send, name -> list of values; `Host` also sets the server name of TLS",
        None,
        nullable=True,
        high=HEADERS_MAX,
        form=FormSpec(
            "more",
            "Headers to send",
            "One on each line, as Host: shop.example.com. Host also sets the name for TLS.",
        ),
    )

    @property
    def codes(self) -> tuple[str, ...]:
        return self.expected_codes or ("200",)

    def header_value(self, name: str) -> str:
        for key, values in (self.header or {}).items():
            if key.lower() == name.lower() and values:
                return values[0]
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpCheck:
    method: str = spec(
        "what counts as success", "connection_established", choices=("connection_established",)
    )
    port: int = spec("port; 0 = 80", 0, low=0, high=65_535)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """`check_regions` None: one region, chosen by greenroom."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec(
        "name, for people",
        pattern=r"[A-Za-z0-9_-]+",
        pattern_words=NAME_WORDS,
        low=1,
        high=200,
        example="origin",
        form=FormSpec("name", "Name", "A short name for you and your colleagues."),
    )
    address: str = spec(
        "host name or IP address of the server that is checked",
        low=1,
        high=254,
        example="origin.example.com",
        form=FormSpec("server", "Server"),
    )
    description: str = spec(
        "only your team sees it", "", high=10_000, form=FormSpec("note", "Note")
    )
    type: str = spec(
        "protocol of the check",
        "HTTP",
        choices=TYPES,
        form=FormSpec("protocol", "Protocol", "HTTP and HTTPS ask for a page; TCP only connects."),
    )
    interval: int = spec(
        "time between two probes of one agent; 0 = the default",
        60,
        unit="seconds",
        low=1,
        high=3_600,
        form=FormSpec("how", "Probe every"),
    )
    timeout: int = spec(
        "timeout of one try; 0 = the default",
        5,
        unit="seconds",
        low=1,
        high=60,
        form=FormSpec("how", "Give up after"),
    )
    retries: int = spec(
        "immediate retries, only after a timeout; 0 = the default",
        2,
        low=1,
        high=5,
        form=FormSpec("how", "Tries after a timeout"),
    )
    consecutive_fails: int = spec(
        "consecutive failed probes of an agent before it reports unhealthy; 0 = the default",
        1,
        low=1,
        high=20,
        form=FormSpec("how", "Failures until unhealthy"),
    )
    consecutive_successes: int = spec(
        "consecutive successful probes of an agent before it reports healthy; 0 = the default",
        1,
        low=1,
        high=20,
        form=FormSpec("how", "Successes until healthy"),
    )
    suspended: bool = spec(
        "send no probes",
        False,
        form=FormSpec("how", "Suspend the check", "It sends nothing until you take this off."),
    )
    check_regions: tuple[str, ...] | None = spec(
        "regions to probe from; null = one, chosen by greenroom; `ALL_REGIONS` = all",
        None,
        nullable=True,
        low=1,
        high=len(REGIONS) + 1,
    )
    http_config: HttpCheck | None = spec("settings of HTTP and HTTPS checks", None, nullable=True)
    tcp_config: TcpCheck | None = spec("settings of TCP checks", None, nullable=True)

    def __post_init__(self) -> None:
        problems = health_check_problems(vars_of(self))
        if problems:
            raise InvalidConfig(problems)

    @property
    def port(self) -> int:
        config = self.tcp_config if self.type == "TCP" else self.http_config
        return (config.port if config else 0) or PORTS[self.type]

    @property
    def served_host(self) -> str:
        """The Host header's, else the address; lower case, without a port."""
        authority = (
            self.http_config.header_value("host") if self.http_config else ""
        ) or self.address
        return (
            authority.lower()
            if ":" in authority.partition(":")[2]
            else authority.lower().partition(":")[0]
        )

    @property
    def regions(self) -> tuple[str, ...]:
        """Empty when greenroom chooses."""
        chosen = self.check_regions or ()
        return (
            REGIONS
            if ALL_REGIONS in chosen
            else tuple(region for region in REGIONS if region in chosen)
        )

    @property
    def probe_longest_ms(self) -> int:
        return self.timeout * (1 + self.retries) * 1000


ZERO_IS_DEFAULT = ("interval", "timeout", "retries", "consecutive_fails", "consecutive_successes")
CONFIGS: Mapping[str, tuple[str, type]] = {
    "HTTP": ("http_config", HttpCheck),
    "HTTPS": ("http_config", HttpCheck),
    "TCP": ("tcp_config", TcpCheck),
}


def effective(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keeps wrong types."""
    found = dict(values)
    defaults = {item.name: item.default for item in fields(HealthCheck)}
    for name in ZERO_IS_DEFAULT:
        if found.get(name) == 0 and not isinstance(found.get(name), bool):
            found[name] = defaults[name]
    if isinstance(found.get("type"), str):
        found["type"] = found["type"].upper()
    kind = found.get("type", "HTTP")
    if isinstance(kind, str) and kind in CONFIGS:
        name, record = CONFIGS[kind]
        if found.get(name) is None:
            found[name] = record()
    for name, record, port in (
        ("http_config", HttpCheck, PORTS.get(str(kind), 80)),
        ("tcp_config", TcpCheck, PORTS["TCP"]),
    ):
        config = found.get(name)
        if isinstance(config, record) and getattr(config, "port", None) == 0:
            found[name] = record(
                **{
                    **{item.name: getattr(config, item.name) for item in fields(record)},
                    "port": port,
                }
            )
    return found


def health_check_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = field_problems(HealthCheck, values)
    wrong = wrong_fields(problems)
    if "address" in values and "address" not in wrong and not _is_address(values["address"]):
        allowed = "a host name or an IP address, without scheme, port or path"
        problems.append(Problem("address", f"must be {allowed}, not {values['address'][:60]!r}"))
    if "check_regions" not in wrong:
        problems += _region_problems(values.get("check_regions"))
    if isinstance(config := values.get("http_config"), HttpCheck):
        problems += _http_problems(config, wrong)
    return problems


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text)) or True
    except ValueError:
        return bool(_ADDRESS.fullmatch(text)) and not _looks_like_a_number(text)


def _looks_like_a_number(name: str) -> bool:
    # `127.1`, `0x7f.1` or `2130706433`: some resolvers read them as addresses, and no host name
    # ends like that.
    last = name.rstrip(".").rpartition(".")[2].lower()
    return last.isdigit() or bool(re.fullmatch(r"0x[0-9a-f]*", last))


def _region_problems(chosen: Any) -> list[Problem]:
    allowed = (*REGIONS, ALL_REGIONS)
    return [
        Problem(
            f"check_regions[{index}]",
            f"must be one of {', '.join(allowed)}, not {str(region)[:40]!r}",
        )
        for index, region in enumerate(chosen or ())
        if region not in allowed
    ]


def _http_problems(config: HttpCheck, wrong: set[str]) -> list[Problem]:
    problems = []
    if "http_config.path" not in wrong and not _PATH.fullmatch(config.path):
        problems.append(
            Problem(
                "http_config.path",
                "must begin with / and hold printable ASCII without blanks and # (percent-encode"
                " them)",
            )
        )
    if "http_config.expected_codes" not in wrong:
        problems += [
            Problem(
                f"http_config.expected_codes[{index}]",
                f"must be a status code such as 200 or a class such as 2xx, not {str(code)[:40]!r}",
            )
            for index, code in enumerate(config.expected_codes)
            if not isinstance(code, str) or not _CODE.fullmatch(code)
        ]
    if config.expected_body and config.method == "HEAD":
        problems.append(
            Problem(
                "http_config.expected_body",
                "must be empty when the method is HEAD, because the response has no body",
            )
        )
    if "http_config.header" not in wrong:
        for name, values in (config.header or {}).items():
            problems += _header_problems(name, values, f"http_config.header.{str(name)[:60]}")
    return problems


def _header_problems(name: Any, values: Any, pointer: str) -> list[Problem]:
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        return [Problem(pointer, "must be the name of a header: letters, digits and -")]
    if name.lower() in NOT_TO_BE_SET:
        return [Problem(pointer, "is set by the probe itself and cannot be overridden")]
    if not isinstance(values, tuple) or not 1 <= len(values) <= HEADERS_MAX:
        return [Problem(pointer, f"must be a list of 1 to {HEADERS_MAX} values")]
    if name.lower() == "host" and len(values) != 1:
        return [Problem(pointer, "must have exactly one value")]
    return [
        Problem(
            f"{pointer}[{index}]", f"must be printable ASCII, at most {HEADER_VALUE_MAX} characters"
        )
        for index, value in enumerate(values)
        if not isinstance(value, str)
        or len(value) > HEADER_VALUE_MAX
        or not _HEADER_VALUE.fullmatch(value)
    ]
