"""What is built from the tree is what the tree says: the lock is current and the wheel holds every
file.
"""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")


IMPORTED_AS = {
    "argon2-cffi": "argon2",
    "google-re2": "re2",
    "markdown-it-py": "markdown_it",
    "prometheus-client": "prometheus_client",
    "tomli-w": "tomli_w",
}


def uv(*arguments: str) -> None:
    done = subprocess.run([UV, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_lock_file_is_current() -> None:
    uv("lock", "--check", "--offline")


def test_the_wheel_holds_every_file_of_the_source(tmp_path: Path) -> None:
    uv("build", "--quiet", "--offline", "--wheel", "--out-dir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    source = ROOT / "src"
    ours = [
        path
        for path in (source / "greenroom").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    wanted = {str(path.relative_to(source)) for path in ours}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert wanted - names == set()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"greenroom"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_installs_and_runs_without_this_tree(tmp_path: Path) -> None:
    """Into an environment of its own; only what it depends on is borrowed from ours, because a test
    downloads nothing.
    """
    uv("build", "--quiet", "--offline", "--wheel", "--out-dir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    uv("venv", "--quiet", "--offline", "--python", sys.executable, str(tmp_path / "venv"))
    uv(
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--python",
        str(tmp_path / "venv"),
        str(wheel),
    )
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # a .pth file in there is not read: our own tree stays out
    (tmp_path / "greenroom.toml").write_text((ROOT / "examples" / "greenroom.toml").read_text())
    check = [tmp_path / "venv" / "bin" / "greenroom", "check", tmp_path / "greenroom.toml"]
    ran = subprocess.run(
        check,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "is valid" in ran.stdout
    where = subprocess.run(
        [tmp_path / "venv/bin/python", "-c", "import greenroom; print(greenroom.__file__)"],
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(site))


def test_the_units_for_systemd_are_correct_and_exposed_to_little(tmp_path: Path) -> None:
    for unit in (ROOT / "examples" / "systemd").iterdir():
        (tmp_path / unit.name).write_text(
            unit.read_text().replace("/opt/greenroom/bin/greenroom", "/bin/true")
        )
    units = [tmp_path / name for name in ("greenroom.service", "greenroom.socket")]
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    judge = ["systemd-analyze", "security", "--offline=true", "--threshold=20", units[0]]
    judged = subprocess.run(judge, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout


def test_every_dependency_of_the_program_is_imported_somewhere() -> None:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [match[0] for line in lines if (match := re.match(r"[\w-]+", line))]
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert [
        name
        for name in names
        if not re.search(rf"^\s*(?:from|import) {IMPORTED_AS.get(name, name)}\b", text, re.M)
    ] == []


@pytest.mark.parametrize("name", ["Containerfile", "Containerfile.compiled"])
def test_every_port_that_an_image_exposes_is_listened_on_from_outside(name: str) -> None:
    """And the control listener is left to the configuration file, which an option in the command
    would silently overrule.
    """
    text = (ROOT / "examples" / "container" / name).read_text()
    ports = [
        port for line in re.findall(r"^EXPOSE (.+)$", text, re.MULTILINE) for port in line.split()
    ]
    (command,) = re.findall(r"^CMD (\[.+\])$", text, re.MULTILINE)
    arguments = json.loads(command)
    outside = [
        argument.rpartition(":")[2] for argument in arguments if argument.startswith("0.0.0.0:")
    ]
    assert ports == outside == ["8080"]
    assert "--control" not in arguments
