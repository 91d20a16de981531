"""What each part of a native pass costs nginx, in instructions for a request:
examples/nginx-native-pass taken apart.

    python bench/pass_budget.py [--nginx /usr/sbin/nginx]

Runs nginx as one process under valgrind (callgrind), with 200 and with 1,200 requests over four
connections; the difference is what a thousand requests take, without the start. The kernel is not
in it, and a busy machine does not change it. Each row adds a part to the one before it, and the
last is the whole example. The visitor sends ticket and pass, and with Chrome's lines two cookies of
the shop before.
"""

import argparse
import base64
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from awake import HEADS, page
from browser_heads import TICKET_BYTES
from plain_proxies import PLAIN
from proxies import EXAMPLES, SECRET, free_port, own_pass

from greenroom.decision.native_pass import PassKeys

CONNECTIONS = 4
FEW, MANY = 200, 1_200
SIZE = 1_024
START_S = 30
CALLGRIND = (
    "valgrind --tool=callgrind --callgrind-out-file={folder}/out {nginx} -p {folder} -c"
    " {folder}/nginx.conf -g".split()
)


def start_origin() -> int:
    """An application with a page of 1 KB; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(sock: socket.socket) -> None:
        while sock.recv(65_536):
            sock.sendall(page(SIZE))

    def accept() -> None:
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def ask(port: int, head: bytes, count: int) -> None:
    """So many requests, four at a time, each answered with 200."""
    socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
    for _ in range(count // CONNECTIONS):
        for sock in socks:
            sock.sendall(head)
        for sock in socks:
            data = b""
            while len(data.partition(b"\r\n\r\n")[2]) < SIZE:
                data += sock.recv(65_536) or b"\r\n\r\n" + b"x" * SIZE
            assert data.startswith(b"HTTP/1.1 200"), data
    for sock in socks:
        sock.close()


def instructions(nginx: str, configuration: str, port: int, head: bytes) -> float:
    """For one request."""
    counted = []
    for count in (FEW, MANY):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "nginx.conf").write_text(configuration)
            (folder / "open-until.map").write_text("")
            own = PassKeys(SECRET).link_secret("shop", "/").decode()
            (folder / "pass-secret.conf").write_text(
                f'secure_link_md5 "$secure_link_expires${{http_host}}{own}";'
            )
            command = [part.format(folder=folder, nginx=nginx) for part in CALLGRIND]
            with open(folder / "log", "w") as log:
                process = subprocess.Popen(
                    [*command, "daemon off; master_process off;"], stderr=log
                )
            end = time.monotonic() + START_S
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit((folder / "log").read_text())
                time.sleep(0.05)
            ask(port, head, count)
            process.terminate()
            process.wait(60)
            found = re.search(
                r"^(?:totals|summary): (\d+)", (folder / "out").read_text(), re.MULTILINE
            )
            counted.append(int(found[1]) if found else 0)
    return (counted[1] - counted[0]) / (MANY - FEW)


def parts(text: str) -> dict[str, str]:
    """The example with fewer and fewer parts left out: row -> configuration."""

    def without(pattern: str, text: str) -> str:
        changed = re.sub(pattern, "", text, count=1, flags=re.DOTALL | re.MULTILINE)
        assert changed != text, pattern
        return changed

    no_link = without(r"^ +secure_link \$pass;.*?if \(\$secure_link != 1\)[^\n]*\n", text)
    no_update = without(r"^ +if \(\$http_greenroom_update\)[^\n]*\n", no_link)
    no_path = without(r"^ +if \(\$request_uri[^\n]*\n", no_update)
    no_removal = without(r'^ +proxy_set_header Cookie "[^\n]*\n', no_path)
    no_cookies = without(r"^ +if \(\$http_cookie.*?return 418; \}\n", no_removal)
    return {
        "the example without the five parts below": no_cookies,
        "finding the pass and the other cookies": no_removal,
        "removing ticket and pass": no_path,
        "the path": no_update,
        "Greenroom-Update": no_link,
        "secure_link": text,
    }


def main() -> None:
    """Prints a row for each part: instructions, how many more than the row before, and as Chrome
    asks.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nginx", default=shutil.which("nginx") or "/usr/sbin/nginx")
    nginx = parser.parse_args().nginx
    port, origin = free_port(), start_origin()
    plain = PLAIN["nginx"].format(port=port, origin=origin, folder="/tmp")
    text = (EXAMPLES / "nginx-native-pass/nginx.conf").read_text()
    for written, real in ((8000, port), (8082, 1), (3000, origin)):
        text = re.sub(rf"\b{written}\b", str(real), text)
    ticket = base64.urlsafe_b64encode(bytes(range(TICKET_BYTES))).decode()
    cookies = (
        f"Cookie: __cfwaitingroom={ticket};"
        f" __greenroom_pass={own_pass('nginx-native-pass', '127.0.0.1')}"
    )
    rows = [
        ("plain nginx", plain, ""),
        ("receiving and passing on ticket and pass", plain, cookies),
    ]
    rows += [(what, configuration, cookies) for what, configuration in parts(text).items()]
    before = dict.fromkeys(HEADS, 0.0)
    print(f"{'':42} " + " ".join(f"{heads:>16}" for heads in HEADS))
    for what, configuration, header in rows:
        line = []
        for heads, write in HEADS.items():
            counted = instructions(nginx, configuration, port, write("/", header).encode())
            line.append(f"{counted:8.0f} {counted - before[heads]:+7.0f}")
            before[heads] = counted
        print(f"{what:42} " + " ".join(line), flush=True)


if __name__ == "__main__":
    main()
