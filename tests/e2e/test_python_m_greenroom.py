"""`python -m greenroom` is the `greenroom` command."""

import subprocess
import sys
from pathlib import Path

import pytest
from warm_start import finished


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("check", "no-such-file.toml"), ("no-such-command",)]
)
def test_the_module_answers_like_the_command(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = subprocess.run(
        [sys.executable, "-m", "greenroom", *arguments], capture_output=True, text=True, timeout=60
    )
    command = finished(*arguments)
    said = (module.returncode, module.stdout, module.stderr)
    assert said == (command.returncode, command.stdout, command.stderr)
    if arguments == ("--help",):
        assert module.returncode == 0
        assert "Usage: greenroom" in module.stdout
