"""greenroom inside a WSGI application that cannot start: in a child of a process that has the
ledger, and without file descriptors.
"""

import subprocess
import sys
from pathlib import Path

LONGEST_S = 60
ASKING = """
import os, resource, signal, sys, time
from greenroom.runtime.embedded import ANSWER_S, RETRY_S
from greenroom.wsgi import WaitingRoom

def app(environ, start_response):
    start_response("200 OK", [])
    return [b"the application"]

ROOM = {"name": "main", "host": "*", "total_active_users": 200, "new_users_per_minute": 200}
room = WaitingRoom(app, {"data": sys.argv[1], "rooms": [ROOM]})

def ask():
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "wsgi.url_scheme": "http"}
    started, since = [], time.monotonic()
    body = b"".join(room({**environ, "HTTP_HOST": "shop.example", "HTTP_ACCEPT": "text/html"}, lambda *given: started.append(given)))
    assert (body == b"the application") is (started[0][0] == "200 OK")
    return started[0][0][:3] + (" late" if time.monotonic() - since > ANSWER_S - 1 else "")
"""


def said(tmp_path: Path, more: str) -> str:
    """What a process prints that has `ask`, the status of one request."""
    command = [sys.executable, "-c", ASKING + more, str(tmp_path / "data")]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LONGEST_S, check=True
    ).stdout


def test_a_child_holds_visitors_at_once_and_lets_them_in_when_its_parent_has_ended(
    tmp_path: Path,
) -> None:
    more = """
print(ask(), flush=True)
ended, may_end = os.pipe()
child = os.fork()
if not child:
    os.close(may_end)
    print(ask(), ask(), flush=True)
    os.kill(os.getppid(), signal.SIGUSR1)
    os.read(ended, 1)
    time.sleep(1.1 * RETRY_S)  # a process of its own: it tries again by its own clock
    print(ask(), flush=True)
    room.close()
    os._exit(0)
signal.sigwait({signal.SIGUSR1})
room.close()
os.close(may_end)
os.waitpid(child, 0)
"""
    more = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n" + more
    assert said(tmp_path, more).split() == ["200", "503", "503", "200"]


def test_a_process_without_file_descriptors_holds_visitors_and_starts_when_there_are_some(
    tmp_path: Path,
) -> None:
    more = """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 4, hard))
print(ask())
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
time.sleep(1.1 * RETRY_S)  # a process of its own: it tries again by its own clock
print(ask())
room.close()
"""
    assert said(tmp_path, more).split() == ["503", "200"]
