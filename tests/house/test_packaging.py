"""What is built from the tree is what the tree says: the lock is current and the wheel holds every file."""

import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")


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
