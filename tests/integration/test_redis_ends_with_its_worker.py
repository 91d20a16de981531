"""A test worker that is killed stops nothing that it has started; its redis-server must end all the
same.
"""

import os
import subprocess
import sys
from pathlib import Path

from redis_world import wait_until

SUPPORT = Path(__file__).resolve().parents[1] / "support"
WORKER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from redis_world import RedisServer
server = RedisServer(Path(sys.argv[2]))
print(server._process.pid, flush=True)
time.sleep(600)  # until the test kills this worker
"""


def is_there(pid: int) -> bool:
    """Whether this process runs; one that has ended may wait to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_worker_leaves_no_redis_server_behind(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(SUPPORT), str(tmp_path / "redis")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout
    pid = int(worker.stdout.readline())
    try:
        assert is_there(pid)
        worker.kill()
        worker.wait()
        wait_until(
            lambda: not is_there(pid), f"redis-server {pid} outlives the worker that started it"
        )
    finally:
        if is_there(pid):
            os.kill(pid, 9)
