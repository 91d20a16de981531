"""A PostgreSQL server of our own in a directory, started and stopped as a test likes."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ports import free_port

SERVER_USER = "postgres"
"""PostgreSQL refuses to run as root; Debian's package makes this user."""


def tool(name: str) -> str:
    """Debian keeps the server's own programs out of the PATH."""
    found = shutil.which(name) or next(
        iter(sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), reverse=True)),
        None,
    )
    assert found, f"{name} of PostgreSQL is not installed; ./test installs it"
    return found


PASSWORD = "hush-hush"  # a word that no log has for another reason


class Postgres:
    """Durability is switched off: the server is never killed, only stopped."""

    def __init__(self) -> None:
        self.folder = Path(
            tempfile.mkdtemp(prefix="greenroom-postgres-")
        )  # pytest's own directories let no one else in
        self._count = 0
        self.port = free_port()
        self._as = (
            ["setpriv", f"--reuid={SERVER_USER}", f"--regid={SERVER_USER}", "--clear-groups"]
            if os.geteuid() == 0
            else []
        )
        if self._as:
            shutil.chown(self.folder, SERVER_USER, SERVER_USER)
        self._run(
            "initdb",
            "-D",
            str(self.folder / "db"),
            "--auth=trust",
            "--username=greenroom",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        )
        self.start()

    def new_database(self) -> str:
        """The URL of another one, empty."""
        self._count += 1
        name = f"greenroom{self._count}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "greenroom", name)
        return f"postgresql://greenroom:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        options = f"-F -h 127.0.0.1 -p {self.port} -k {self.folder} -c shared_buffers=8MB -c max_connections=40"
        self._run(
            "pg_ctl",
            "-D",
            str(self.folder / "db"),
            "-l",
            str(self.folder / "log"),
            "-w",
            "-o",
            options,
            "start",
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "db"), "-m", "immediate", "-w", "stop")

    def close(self) -> None:
        """Stops it and takes its directory away."""
        self.stop()
        shutil.rmtree(self.folder)

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as, tool(name), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
