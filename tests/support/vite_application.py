"""The application from npm that Chromium visits: Vite's development server, as
tests/fixtures/vite/package-lock.json says.

`./test` runs this file once for each lock file, where npm is; the server runs with any Node, also
with the one that Playwright brings.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from playwright._impl._driver import compute_driver_executable

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "fixtures" / "vite"
LOCK = "package-lock.json"
INSTALLED = ROOT / ".tools" / "vite"
INSTALL_S = 300
"""Ten packages, over a slow network."""


def install() -> Path:
    """Where Vite is, after `npm ci` if it is not there yet."""
    modules = INSTALLED / "node_modules"
    if (
        modules.is_dir()
        and (INSTALLED / LOCK).is_file()
        and (INSTALLED / LOCK).read_bytes() == (SOURCE / LOCK).read_bytes()
    ):
        return modules
    shutil.rmtree(INSTALLED, ignore_errors=True)
    making = INSTALLED.with_name(f"{INSTALLED.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    for name in ("package.json", LOCK):
        shutil.copy(SOURCE / name, making)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=making,
        check=True,
        timeout=INSTALL_S,
    )
    making.rename(INSTALLED)
    return modules


def node() -> str:
    """Some Node of this machine."""
    return shutil.which("node") or str(compute_driver_executable()[0])


@contextmanager
def serving(folder: Path, port: int) -> Iterator[Path]:
    """The development server on this port, for a copy of the application in `folder`; its source
    there may be edited.
    """
    application = folder / "application"
    shutil.copytree(SOURCE, application)
    (application / "node_modules").symlink_to(install())
    command = [
        node(),
        "node_modules/vite/bin/vite.js",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--strictPort",
    ]
    with (folder / "vite.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=application, stdout=log, stderr=log)
    try:
        yield application
    finally:
        server.terminate()
        server.wait(30)


def answers(port: int) -> bool:
    """Whether it serves its page."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    install()
