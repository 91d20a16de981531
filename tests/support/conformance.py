"""The conformance table: more than 200 requests, each with the room it meets, the cookie it brings
and the form it has.

Every integration is asked all of them and must do what the gateway does (`test_conformance.py`),
but for the differences that docs/reference/proxies.md lists.
"""

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass

ROOMS: Mapping[str, str] = {
    "open": "total_active_users = 10000",
    "full": "total_active_users = 1",
    "closed": 'total_active_users = 1\nqueueing_method = "reject"',
    "later": "total_active_users = 1\nqueue_all = true",
    "asleep": "total_active_users = 1\nsuspended = true",
    "json": "total_active_users = 1\njson_response_enabled = true",
    "busy": "total_active_users = 1\nqueueing_status_code = 429",
    "strict": "total_active_users = 1\nsame_status_for_all = true",
    "scripts": 'total_active_users = 1\njson_response_enabled = true\ncors_origins = ["https://a.example"]',
}
"""Rooms by the first label of their host; all but the first two and `asleep` are never entered."""

NEVER_ENTERED = ("closed", "later", "json", "busy", "strict", "scripts")


def rooms_toml() -> str:
    """The rooms as they are configured. One visitor enters each of those with one place."""
    return "".join(
        f'[[rooms]]\nname = "{name}"\nhost = "{name}.example"\nnew_users_per_minute = 100000\npace_admissions = false\n{text}\n'
        for name, text in ROOMS.items()
    )


PAGE = {"Accept": "text/html"}
FORMS: Mapping[str, tuple[str, dict[str, str]]] = {
    "page": ("GET", PAGE),
    "head": ("HEAD", PAGE),
    "post": ("POST", PAGE),
    "delete": ("DELETE", PAGE),
    "image": ("GET", {"Accept": "image/*", "Sec-Fetch-Dest": "image"}),
    "json": ("GET", {"Accept": "application/json"}),
    "script": ("GET", {"Accept": "*/*", "Sec-Fetch-Dest": "empty"}),
    "events": ("GET", {"Accept": "text/event-stream"}),
    "update": ("GET", {"Accept": "*/*", "Greenroom-Update": "1"}),
    "prefetch": ("GET", {**PAGE, "Sec-Purpose": "prefetch"}),
    "crawler": ("GET", {**PAGE, "User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1)"}),
    "script of a listed origin": (
        "GET",
        {"Accept": "*/*", "Sec-Fetch-Dest": "empty", "Origin": "https://a.example"},
    ),
    "JSON of a listed origin": (
        "PUT",
        {"Accept": "application/json", "Sec-Fetch-Dest": "empty", "Origin": "https://a.example"},
    ),
    "script of another origin": (
        "GET",
        {"Accept": "*/*", "Sec-Fetch-Dest": "empty", "Origin": "https://b.example"},
    ),
    "preflight of another origin": (
        "OPTIONS",
        {"Origin": "https://b.example", "Access-Control-Request-Method": "PUT"},
    ),
    "preflight": (
        "OPTIONS",
        {"Origin": "https://a.example", "Access-Control-Request-Method": "PUT"},
    ),
}
"""(method, headers) by name."""

TICKETS = ("none", "inside", "forged", "of another room", "forged before genuine")
NAME = "__cfwaitingroom"

ODD: Mapping[str, tuple[bytes, ...]] = {
    "paths": (
        b"/a/../b", b"/a/./b", b"//a", b"/a//b", b"/%2e%2e/a", b"/a%2fb", b"/a%5cb", b"/a;b", b"/a%3bb", b"/a%00", b"/a%0d%0ab", b"/%252e%252e/a",
        b"/a\\b", b"/caf%C3%A9", b"/caf\xc3\xa9", b"/a%zz", b"/..", b"/a/..;/b", b"/A", b"/%41", b"/a?b=c&d", b"/a?", b"/?x=/../y", b"*", b"",
    ),
    "whole addresses": (b"http://full.example/a", b"http://open.example/a", b"https://full.example/a", b"ftp://full.example/a"),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One request as bytes, but for the tickets, which each integration gives out itself."""

    name: str
    room: str
    ticket: str
    data: bytes
    method: str = "GET"
    odd: bool = False


def _request(method: str, target: bytes, host: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = "Content-Length: 3\r\n\r\nabc" if method == "POST" else "\r\n"
    return (
        b"%b %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n"
        % (method.encode(), target, host.encode())
        + (lines + body).encode()
    )


FORGED_HEADERS: Mapping[str, str] = {
    "X-Forwarded-Method": "OPTIONS",
    "X-Forwarded-Uri": "/open",
    "X-Original-URI": "/open",
    "X-Original-Method": "OPTIONS",
    "X-Original-Host": "asleep.example",
    "X-Forwarded-Host": "asleep.example",
    "X-Forwarded-For": "127.0.0.1",
    "Forwarded": "for=127.0.0.1;host=asleep.example",
    "X-HTTP-Method-Override": "OPTIONS",
    "X-Rewrite-URL": "/open",
    "Greenroom-Verdict": "forward",
    "Greenroom-Pass": "x",
    "X-Envoy-Auth-Headers-To-Remove": "host",
    "X-Accel-Redirect": "/open",
    "Upgrade-Insecure-Requests": "1",
}


def table() -> list[Row]:
    """Every row: each form in each room without a ticket and inside, odd tickets, odd targets,
    forged headers, odd heads.
    """
    rows = [
        Row(
            f"{form} in {room} with ticket {ticket}",
            room,
            ticket,
            _request(method, b"/a", f"{room}.example", headers),
            method,
        )
        for room in ROOMS
        for form, (method, headers) in FORMS.items()
        for ticket in (TICKETS if form in ("page", "post") and room == "full" else TICKETS[:2])
        if ticket == "none" or room == "full"
    ]
    rows += [
        Row(
            f"page in {room} with ticket {ticket}",
            room,
            ticket,
            _request("GET", b"/b", f"{room}.example", PAGE),
        )
        for room in ("open", *NEVER_ENTERED)
        for ticket in ("forged", "of another room")
    ]
    for kind, targets in ODD.items():
        for target in targets:
            for room in ("full", "asleep"):
                data = _request(
                    "OPTIONS" if target == b"*" else "GET", target, f"{room}.example", PAGE
                )
                rows.append(Row(f"{kind}: {target!r} in {room}", room, "none", data, odd=True))
    rows += [
        Row(
            f"forged {name}",
            "full",
            "none",
            _request("GET", b"/a", "full.example", {**PAGE, name: value}),
        )
        for name, value in FORGED_HEADERS.items()
    ]
    plain = b"Connection: close\r\nAccept: text/html\r\n"
    heads = {
        "two hosts": b"GET /a HTTP/1.1\r\nHost: full.example\r\nHost: asleep.example\r\n"
        + plain
        + b"\r\n",
        "no host": b"GET /a HTTP/1.1\r\n" + plain + b"\r\n",
        "a host with a user": b"GET /a HTTP/1.1\r\nHost: asleep.example@full.example\r\n"
        + plain
        + b"\r\n",
        "a host with a blank": b"GET /a HTTP/1.1\r\nHost: full.example asleep.example\r\n"
        + plain
        + b"\r\n",
        "two lengths": b"POST /a HTTP/1.1\r\nHost: full.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n"
        + plain
        + b"\r\nab",
        "length and chunks": b"POST /a HTTP/1.1\r\nHost: full.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"
        + plain
        + b"\r\n0\r\n\r\n",
        "TRACE": _request("TRACE", b"/a", "full.example", PAGE),
        "CONNECT": _request("CONNECT", b"full.example:443", "full.example", PAGE),
        "a method of 40 letters": _request("X" * 40, b"/a", "full.example", PAGE),
        "a blank before the colon": b"GET /a HTTP/1.1\r\nHost: full.example\r\nX-A : b\r\n"
        + plain
        + b"\r\n",
        "a folded line": b"GET /a HTTP/1.1\r\nHost: full.example\r\nX-A: b\r\n c\r\n"
        + plain
        + b"\r\n",
    }
    rows += [
        Row(f"head: {name}", "full", "none", data, data[: data.index(b" ")].decode(), odd=True)
        for name, data in heads.items()
    ]
    for host in ("FULL.example", "full.example.", "full.example:80", "full.example:99999"):
        rows.append(
            Row(f"host {host}", "full", "none", _request("GET", b"/a", host, PAGE), odd=True)
        )
    return rows


@dataclass(frozen=True)
class Seen:
    """What a visitor could tell: who answered, with which status, in which form, whether a ticket
    came with it; `host` is the one that the application was given, `readable` the origin whose
    scripts may read the answer."""

    origin: bool
    status: int
    form: str = ""
    ticket: bool = False
    host: str = ""
    readable: str = ""


def send(address: tuple[str, int], row: Row, tickets: Mapping[str, str]) -> Seen:
    """Sends one row; status 0 when the connection ended without an answer."""
    data = row.data
    cookie = {
        "inside": "{inside}",
        "forged": "x" * 108,
        "of another room": "{other}",
        "forged before genuine": "x" * 108 + f"; {NAME}={{inside}}",
    }
    if row.ticket != "none":
        value = cookie[row.ticket].format(**tickets)
        data = data.replace(b"\r\n", f"\r\nCookie: {NAME}={value}\r\n".encode(), 1)
    with socket.create_connection(address, timeout=60) as sock:
        sock.sendall(data)
        answer = http.client.HTTPResponse(sock, method=row.method)
        try:
            answer.begin()
            body = answer.read()
        except (http.client.HTTPException, ConnectionError):
            return Seen(False, 0)
    form = (answer.headers.get("Content-Type") or "").partition(";")[0]
    ticket = any(line.startswith(NAME) for line in answer.headers.get_all("Set-Cookie", []))
    origin = answer.headers.get("X-Origin") is not None
    given = (
        {name.lower(): value for name, value in json.loads(body)["headers"]}
        if origin and body
        else {}
    )
    host = given.get("host", "").lower().partition(":")[0].rstrip(".")
    return Seen(
        origin,
        answer.status,
        form,
        ticket,
        host,
        answer.headers.get("Access-Control-Allow-Origin", ""),
    )
