"""Compiles the modules of the hot path with mypyc, for the wheel that is built with
GREENROOM_COMPILED=1.

Which ones is said in pyproject.toml, at the wheel's custom hook. The source stays in the wheel
beside what was made of it, and Python takes the compiled module first. Records are compiled as
native classes (`native_records`).
"""

import os
import shutil
from pathlib import Path

from mypyc.build import mypycify
from native_records import native
from setuptools import Distribution
from setuptools.command.build_ext import build_ext


def file_of(module: str) -> Path:
    """Its file, from the root of the repository."""
    return Path("src").joinpath(*module.split(".")).with_suffix(".py")


def compile_modules(root: Path, modules: list[str], into: Path) -> dict[str, str]:
    """The compiled files in the folder `into`, each with its place in the wheel.

    SystemExit when there is one that cannot be compiled, with the reason; mypy prints its own.
    """
    source = into / "source"
    shutil.copytree(
        root / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "static")
    )
    shutil.copy(root / "pyproject.toml", source)
    for module in modules:
        try:
            (source / file_of(module)).write_text(native((root / file_of(module)).read_text()))
        except ValueError as error:
            raise SystemExit(f"{file_of(module)} cannot be compiled: {error}") from None
    os.chdir(source)  # where mypy finds its settings
    extensions = mypycify(
        [str(file_of(module)) for module in modules],
        opt_level="3",
        debug_level="0",
        target_dir=str(into / "c"),
    )
    command = build_ext(Distribution({"name": "greenroom", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(into / "lib"), str(into / "temp")
    command.ensure_finalized()
    command.run()
    return {
        str(file): str(file.relative_to(into / "lib"))
        for file in (into / "lib").rglob("*")
        if file.is_file()
    }
