"""What is built from the tree is what the tree says: the lock is current and the wheel holds every file."""

import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")


IMPORTED_AS = {"google-re2": "re2", "prometheus-client": "prometheus_client", "tomli-w": "tomli_w"}


def uv(*arguments: str) -> None:
    done = subprocess.run([UV, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_lock_file_is_current() -> None:
    uv("lock", "--check", "--offline")


def test_the_wheel_holds_every_file_of_the_source(tmp_path: Path) -> None:
    uv("build", "--quiet", "--offline", "--wheel", "--out-dir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    source = ROOT / "src"
    ours = [path for path in (source / "greenroom").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {str(path.relative_to(source)) for path in ours}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert wanted - names == set()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"greenroom"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_every_dependency_of_the_program_is_imported_somewhere() -> None:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [match[0] for line in lines if (match := re.match(r"[\w-]+", line))]
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert [name for name in names if not re.search(rf"^\s*(?:from|import) {IMPORTED_AS.get(name, name)}\b", text, re.M)] == []
