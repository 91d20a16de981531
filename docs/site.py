"""Lays the documents out for Zensical and starts it: `python docs/site.py [build [FOLDER]]`.

The site has the tree of the repository, so links between documents, examples and the files at its
top work as they are. A folder of examples without a page of its own gets a list of its files.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHOWN = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
)
IGNORED = shutil.ignore_patterns("*.py", "serve", "__pycache__")

NAV = {
    "greenroom": "README.md",
    "Documentation": "docs/README.md",
    "Tutorials": "docs/tutorial",
    "How-to": "docs/howto",
    "Reference": "docs/reference",
    "Explanation": "docs/explanation",
    "Decisions": "docs/decisions",
    "Architecture": "ARCHITECTURE.md",
    "Changes": "CHANGELOG.md",
    "Security": "SECURITY.md",
}
"""Title -> a page, or the folder whose pages stand below it."""

SETTINGS = """
[project]
site_name = "greenroom {version}"
docs_dir = "pages"
nav = [{nav}]
[project.theme]
font = false
features = ["content.code.copy", "navigation.footer", "navigation.sections", "navigation.top", "search.highlight"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Dark colours"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Light colours"
[project.markdown_extensions]
toc.permalink = true
tables = {{}}
pymdownx.highlight = {{}}
pymdownx.superfences = {{}}
"""


def lay_out(folder: Path) -> None:
    """Writes the pages and Zensical's settings into an empty folder."""
    pages = folder / "pages"
    pages.mkdir()
    for name in SHOWN:
        shutil.copy(ROOT / name, pages)
    shutil.copytree(ROOT / "docs", pages / "docs", ignore=IGNORED)
    shutil.copytree(
        ROOT / "examples", pages / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    for inner in [one for one in (pages / "examples").rglob("*") if one.is_dir()]:
        _list_files(inner)
    _add_linked(pages)
    version = _version()
    nav = ", ".join(_entry(pages, title, path) for title, path in NAV.items())
    (folder / "zensical.toml").write_text(SETTINGS.format(version=version, nav=nav))


def _add_linked(pages: Path) -> None:
    """Files of the source and the tests that documents link to."""
    for page in pages.rglob("*.md"):
        for link in re.findall(r"\]\(((?:\.\./)+[^)#\s]+)", page.read_text()):
            target = (page.parent / link).resolve()
            source = ROOT / target.relative_to(pages.resolve())
            if target.exists() or not source.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
                _list_files(target)
            else:
                shutil.copy(source, target)


def _version() -> str:
    line = next(line for line in (ROOT / "pyproject.toml").open() if line.startswith("version"))
    return line.split('"')[1]


def _entry(pages: Path, title: str, path: str) -> str:
    if path.endswith(".md"):
        return f'{{ "{title}" = "{path}" }}'
    found = sorted((pages / path).glob("*.md"), key=lambda one: (one.name != "README.md", one.name))
    below = ", ".join(f'"{one.relative_to(pages)}"' for one in found)
    return f'{{ "{title}" = [{below}] }}'


def _list_files(folder: Path) -> None:
    index = folder / "README.md"
    if index.exists():
        return
    names = sorted(one.name + "/" * one.is_dir() for one in folder.iterdir())
    index.write_text(f"# {folder.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names))


def main() -> int:
    command, *rest = sys.argv[1:] or ["serve"]
    site = Path(*rest[:1] or ["site"]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_out(folder)
        zensical = Path(sys.executable).with_name("zensical")
        strict = ["--strict"] if command == "build" else []
        done = subprocess.run([zensical, command, *strict], cwd=folder, check=False)
        if command == "build" and not done.returncode:
            shutil.rmtree(site, ignore_errors=True)
            shutil.copytree(folder / "site", site)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
