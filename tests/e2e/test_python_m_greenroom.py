"""`python -m greenroom` is the `greenroom` command."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = str(Path(sys.executable).parent / "greenroom")
MODULE = [sys.executable, "-m", "greenroom"]


def run(*command: str) -> tuple[int, str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("check", "no-such-file.toml"), ("no-such-command",)]
)
def test_the_module_answers_like_the_command(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*MODULE, *arguments) == run(SCRIPT, *arguments)


def test_its_help_names_the_command() -> None:
    code, text, _ = run(*MODULE, "--help")
    assert code == 0
    assert "Usage: greenroom" in text
