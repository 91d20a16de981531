"""The gateway in front of a real nginx, asked by a real curl; and bodies that would not fit into
memory.
"""

import asyncio
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from tests.conftest import eventually

from greenroom.gateway.origin.address import Origin

pytestmark = pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("curl")), reason="needs nginx and curl"
)

STREAMED = 256 << 20
"""Bytes of the large bodies. The same with 2 GiB: GREENROOM_STREAMED=2147483648 as environment
variable.
"""


@pytest.fixture
def nginx(tmp_path: Path, free_port):
    """nginx that serves a folder, compresses, takes uploads and throws them away."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "page.html").write_text("<p>hello</p>" * 1000)
    (site / "data.bin").write_bytes(bytes(range(256)) * 4096)
    port = free_port()
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"""
        worker_processes 1; daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;
        events {{ worker_connections 512; }}
        http {{ access_log off; {temporary} types {{ text/html html; }} gzip on; gzip_min_length 1; client_max_body_size 1m;
        server {{ listen 127.0.0.1:{port}; root {site};
          location /moved {{ return 302 /page.html; }}
          location /upload {{ proxy_pass http://127.0.0.1:{port}/sink; }}
          location /sink {{ return 200 "taken\\n"; }}
        }} }}
        """
    )
    process = subprocess.Popen(
        ["nginx", "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")]
    )
    asks = ["curl", "-s", f"http://127.0.0.1:{port}/"]
    eventually(
        lambda: subprocess.run(asks, stdout=subprocess.DEVNULL, check=False).returncode == 0,
        "nginx answers",
    )
    yield port
    process.terminate()
    process.wait()


@pytest.mark.parametrize(
    "arguments",
    [
        ["/page.html"],
        ["-I", "/page.html"],
        ["--compressed", "/page.html"],
        ["-r", "100-199", "/data.bin"],
        ["-r", "-5", "/data.bin"],
        ["-r", "0-1,5-6", "/data.bin"],
        ["-r", "99999999-", "/data.bin"],
        ["/data.bin", "/page.html", "/data.bin"],
        ["-H", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT", "/page.html"],
        ["/missing"],
        ["-L", "/moved"],
        ["-d", "a=b", "/upload"],
        ["-H", "Transfer-Encoding: chunked", "-d", "a=b", "/upload"],
        ["-T", "{data}", "/upload"],
        ["-H", "Expect: 100-continue", "-T", "{data}", "/upload"],
        ["-d", "x" * 100_000, "/upload"],
        ["-X", "DELETE", "/page.html"],
        ["--http1.0", "/page.html"],
        ["-H", "Connection: close", "/page.html"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
async def test_curl_gets_through_the_gateway_what_it_gets_from_nginx(
    rig, nginx, tmp_path, arguments
) -> None:
    async def curl(port: int) -> tuple[bytes, str]:
        filled = [
            f"http://127.0.0.1:{port}{argument}"
            if argument.startswith("/")
            else argument.format(data=tmp_path / "site" / "data.bin")
            for argument in arguments
        ]
        command = [
            "curl",
            "-s",
            "-S",
            "-m",
            "60",
            "-w",
            "%{stderr}%{http_code} %{content_type} %{size_download} %header{etag} %header{content-range};",
            *filled,
        ]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        head = b"\r\n".join(
            line
            for line in out.split(b"\r\n")
            if not line.lower().startswith((b"date", b"connection"))
        )
        return head if "-I" in arguments else out, err.decode()

    async with rig.running(origin=Origin.of(f"http://127.0.0.1:{nginx}")):
        expected = await curl(nginx)
        assert expected[1].strip(), "curl said nothing"
        for _ in range(2):
            assert await curl(rig.address[1]) == expected


GATEWAY = textwrap.dedent("""
    import asyncio, sys, uvloop
    from greenroom.gateway.origin.address import Origin
    from greenroom.gateway.server import Gateway
    from greenroom.decision.verdict import Forward

    class Everybody:
        own_cookies = frozenset()
        def verdict(self, arrival, later, late=None): return Forward()
        def obey(self, forward, command): return b""
        def goes_first(self, forward, arrival): return False

    async def main():
        origin = Origin.of(sys.argv[1])
        gateway = Gateway(Everybody(), lambda host: origin)
        print((await gateway.start(host="127.0.0.1"))[0][1], flush=True)
        await asyncio.Event().wait()

    uvloop.run(main())
""")


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_bodies_that_do_not_fit_into_memory_pass_both_ways_at_constant_memory(free_port) -> None:
    size = int(os.environ.get("GREENROOM_STREAMED", STREAMED))
    piece = hashlib.sha256(b"greenroom").digest() * 32768  # 1 MiB
    seen: dict[str, object] = {}
    listener = socket.create_server(("127.0.0.1", 0))

    def origin() -> None:
        """Takes an upload, then sends a download, on two connections or one."""
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            while stream.readline() not in (b"\r\n", b""):
                pass
            taken, left = hashlib.sha256(), size
            while left:
                data = stream.read(min(left, 1 << 20))
                taken.update(data)
                left -= len(data)
            seen["upload"] = taken.hexdigest()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // len(piece)):
                connection.sendall(piece)

    threading.Thread(target=origin, daemon=True).start()
    process = subprocess.Popen(
        [sys.executable, "-c", GATEWAY, f"http://127.0.0.1:{listener.getsockname()[1]}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        port = int(process.stdout.readline())
        before = most = resident_bytes(process.pid)
        expected = hashlib.sha256()
        with (
            socket.create_connection(("127.0.0.1", port)) as visitor,
            visitor.makefile("rb") as stream,
        ):
            visitor.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // len(piece)):
                visitor.sendall(piece)
                expected.update(piece)
                most = max(most, resident_bytes(process.pid))
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            while stream.readline() != b"\r\n":
                pass
            got, left = hashlib.sha256(), size
            while left:
                data = stream.read(min(left, 1 << 20))
                assert data, "the download broke off"
                got.update(data)
                left -= len(data)
                most = max(most, resident_bytes(process.pid))
        assert seen["upload"] == got.hexdigest() == expected.hexdigest()
        assert most - before < 8 << 20
    finally:
        process.kill()
        process.wait()
        listener.close()
