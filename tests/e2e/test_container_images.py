"""The images of examples/container, built and started with buildah on a small Debian with Python:
no registry is asked for the image of Python.

Run by hand, as root, with the Debian packages buildah, crun and mmdebstrap; it takes some minutes:

    ./test -m campaign tests/e2e/test_container_images.py
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from receivers import until

ROOT = Path(__file__).resolve().parents[2]
BASE = "docker.io/library/python:3.13-slim"
"""Under this name the stand-in is found in the storage of the test; its Python is that of Debian.
"""

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
DEBIAN = "python3,python3-dev,python3-pip,ca-certificates"

pytestmark = [pytest.mark.campaign, pytest.mark.needs("containers")]


class Buildah:
    """With a storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.command = [
            "buildah",
            "--root",
            str(folder / "storage"),
            "--runroot",
            str(folder / "run"),
        ]
        self.env = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self.command, *arguments], env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
        return done.stdout.strip()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    folder = tmp_path_factory.mktemp("images")
    found = Buildah(folder)
    subprocess.run(
        [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={DEBIAN}",
            "bookworm",
            str(folder / "debian.tar"),
        ],
        check=True,
    )
    base = found("from", "scratch")
    found("add", base, str(folder / "debian.tar"), "/")
    found("copy", base, CERTIFICATES, CERTIFICATES)
    as_the_image_has_it = (
        "rm -f /usr/lib/python3*/EXTERNALLY-MANAGED; ln -s /usr/bin/python3 /usr/local/bin/python3"
    )
    found("run", base, "--", "sh", "-c", as_the_image_has_it)
    found("config", "--env", f"SSL_CERT_FILE={CERTIFICATES}", "--env", "UV_SYSTEM_CERTS=1", base)
    found("commit", "--rm", base, BASE)
    yield found
    found("rm", "--all")
    found("rmi", "--all", "--force")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is in the repository, without what a working copy has beside it, and the plain wheel in
    `dist`.
    """
    folder = tmp_path_factory.mktemp("source")
    shutil.copytree(
        ROOT,
        folder,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(".?*", "node_modules", "__pycache__", "data", "dist"),
    )
    uv = shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")
    subprocess.run([uv, "build", "--quiet", "--wheel"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("file", "context", "compiled"),
    [("Containerfile", "dist", 0), ("Containerfile.compiled", ".", 1)],
)
def test_an_image_is_built_and_serves(
    file: str,
    context: str,
    compiled: int,
    buildah: Buildah,
    source: Path,
    free_port: Callable[[], int],
) -> None:
    image = f"greenroom-{compiled}"
    buildah(
        "bud",
        "--pull-never",
        "-f",
        str(ROOT / "examples" / "container" / file),
        "-t",
        image,
        str(source / context),
    )
    container = buildah("from", "--pull-never", image)
    written = "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}} {{.OCIv1.Config.User}}"
    assert buildah("inspect", "--format", written, image).startswith(
        "[greenroom] [serve --config /etc/greenroom.toml"
    )
    inside = [
        'test "$(id -u)" = 10001',
        'test "$(stat -c %U:%a /data)" = greenroom:700',
        f"greenroom --version | grep -c compiled | grep -qx {compiled}",
    ]
    for check in (
        inside
    ):  # by their status: with this isolation buildah may lose what a short command prints
        buildah("run", container, "--", "sh", "-c", check)
    visitors, control = free_port(), free_port()
    arguments = [
        "--listen",
        f"127.0.0.1:{visitors}",
        "--control",
        f"127.0.0.1:{control}",
        "--data",
        "/data",
    ]
    serve = [
        "greenroom",
        "serve",
        *arguments,
        "--origin",
        "http://127.0.0.1:9",
        "--total-active-users",
        "9",
        "--new-users-per-minute",
        "9",
    ]
    running = subprocess.Popen(
        [*buildah.command, "run", container, "--", *serve],
        env=buildah.env,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: _read(f"http://127.0.0.1:{control}/readyz") == b"serving\n", 60)
        assert f"greenroom_compiled {compiled}".encode() in _read(
            f"http://127.0.0.1:{control}/metrics"
        )
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(60)


def _read(url: str) -> bytes:
    try:
        with urlopen(url) as answer:
            return bytes(answer.read())
    except (URLError, ConnectionError):
        return b""
