"""More than 400 requests through greenroom and through nginx to the same origin: the differences
are known, and every request arrives.

greenroom has one room with space, and each request is a newcomer's without cookies: the first
visitors must notice nothing.
"""

import contextlib
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from known_differences import (
    KNOWN,
    REFUSED_TARGETS,
    SEVERAL_READINGS,
    known_as,
    known_with,
    nginx_version,
)
from origin_answers import ANSWERS
from ports import free_port
from proxied_requests import HOST, ODD_TARGETS, every_request
from two_front_ends import PATIENCE_S, OddOrigin, ask, differences, through

DOCUMENT = (Path(__file__).parents[2] / "docs/explanation/beside-nginx.md").read_text()
REQUESTS = list(every_request())
VERSION = nginx_version()

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
  scgi_temp_path {folder}; large_client_header_buffers 4 16k; merge_slashes off;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{origin};
      proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off; proxy_redirect off; proxy_buffer_size 64k;
      proxy_buffers 8 64k;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;
    }}
  }}
}}
"""

GREENROOM = """
origin = "http://127.0.0.1:{origin}"
default_host = "shop.example.com"

[[rooms]]
name = "main"
host = "*"
total_active_users = 100000
new_users_per_minute = 100000
"""


class Proxies(NamedTuple):
    """Where the two listen, and the origin behind both."""

    nginx: int
    greenroom: int
    origin: OddOrigin


@pytest.fixture(scope="module")
def proxies(tmp_path_factory: pytest.TempPathFactory, shared_greenroom) -> Iterator[Proxies]:
    folder = tmp_path_factory.mktemp("nginx")
    origin = OddOrigin(ANSWERS)
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, origin=origin.port))
    process = subprocess.Popen(["nginx", "-e", str(folder / "error.log"), "-c", str(config)])
    try:
        end = time.monotonic() + PATIENCE_S
        while not _listens(port):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)  # nginx starts
        running = shared_greenroom.config(GREENROOM.format(origin=origin.port))
        yield Proxies(port, running.address[1], origin)
    finally:
        process.kill()
        process.wait()
        origin.close()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False


@pytest.fixture(scope="module")
def found(proxies: Proxies) -> dict[str, set[str]]:
    """The differences of each request, by its name: nginx first, greenroom second."""
    return {
        request.name: differences(
            through(proxies.origin, proxies.nginx, request.raw, request.method),
            through(proxies.origin, proxies.greenroom, request.raw, request.method),
        )
        for request in REQUESTS
    }


def test_the_requests_are_many_and_different() -> None:
    assert len(REQUESTS) >= 400
    assert (
        len({request.name for request in REQUESTS})
        == len({request.raw for request in REQUESTS})
        == len(REQUESTS)
    )


def test_every_request_that_reaches_the_origin_through_nginx_reaches_it_through_greenroom(
    found,
) -> None:
    assert [
        name
        for name, differ in found.items()
        if "to origin: arrives only through the first" in differ
    ] == []


def test_every_difference_is_known(found) -> None:
    unknown = {
        name: left
        for name, differ in found.items()
        if (left := {one for one in differ if not known_as(one, name, VERSION)})
    }
    assert unknown == {}


def test_every_known_difference_occurs(found) -> None:
    occurring = {
        known
        for name, differ in found.items()
        for one in differ
        for known in known_as(one, name, VERSION)
    }
    assert [row.name for row in known_with(VERSION) if row.name not in occurring] == []


def test_every_known_difference_has_its_reason_in_the_documents() -> None:
    assert re.findall(r"^\| `([a-z0-9-]+)` \| .{20,}", DOCUMENT, re.MULTILINE) == [
        row.name for row in KNOWN
    ]


def test_the_origin_was_never_sent_garbage(proxies: Proxies, found) -> None:
    assert proxies.origin.garbage == []


@pytest.mark.parametrize("target", [*SEVERAL_READINGS, *ODD_TARGETS])
def test_a_path_whose_readings_belong_to_one_room_reaches_the_origin_as_through_nginx(
    proxies: Proxies, target: str
) -> None:
    raw = f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    through_nginx, through_greenroom = (
        through(proxies.origin, port, raw, "GET") for port in (proxies.nginx, proxies.greenroom)
    )
    differ = differences(through_nginx, through_greenroom)
    assert {one for one in differ if not known_as(one, f"target: {target}", VERSION)} == set()
    if target in SEVERAL_READINGS:
        assert "to origin: target" not in differ, "what is read in several ways goes on as it came"


@pytest.mark.parametrize("target", REFUSED_TARGETS)
def test_a_path_that_can_be_read_in_two_ways_is_refused_with_the_reason(
    proxies: Proxies, target: str
) -> None:
    proxies.origin.take()
    answered = ask(
        proxies.greenroom, f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(), "GET"
    )
    assert answered.status == 400
    assert REFUSED_TARGETS[target] in answered.body.decode()
    assert proxies.origin.take() == []
    assert f"`{target}`" in DOCUMENT
