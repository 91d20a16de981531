"""Compiles the modules of the hot path with mypyc, for the wheel that is built with GREENROOM_COMPILED=1.

Which ones is said in pyproject.toml, at the wheel's custom hook. The source stays in the wheel beside what was made of it, and Python
takes the compiled module first.
"""

import os
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext


def sources(root: Path, modules: list[str]) -> list[str]:
    """Their files, from the root of the repository."""
    return [str((root / "src").joinpath(*module.split(".")).with_suffix(".py").relative_to(root)) for module in modules]


def compile_modules(root: Path, modules: list[str], into: Path) -> dict[str, str]:
    """The compiled files in the folder `into`, each with its place in the wheel.

    SystemExit when there is one that cannot be compiled; mypy says why.
    """
    os.chdir(root)  # where mypy finds its settings
    extensions = mypycify(sources(root, modules), opt_level="3", debug_level="0", target_dir=str(into / "c"))
    command = build_ext(Distribution({"name": "greenroom", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(into / "lib"), str(into / "temp")
    command.ensure_finalized()
    command.run()
    return {str(file): str(file.relative_to(into / "lib")) for file in (into / "lib").rglob("*") if file.is_file()}
