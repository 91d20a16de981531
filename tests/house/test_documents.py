"""The documents tell the truth: links lead somewhere, named files exist, and no trace of one
person's machine is left.
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split("\0")
FILES = [ROOT / name for name in TRACKED if name and (ROOT / name).is_file()]
DOCUMENTS = [path for path in FILES if path.suffix == ".md"]
TEXTS = [
    path
    for path in FILES
    if path.suffix not in {".png", ".webp", ".lock", ".ico", ".woff2"} and path != Path(__file__)
]
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()} | {
    "src",
    "tests",
    "docs",
    "examples",
    "scripts",
    "bench",
}
ROOMS = ROOT / "src" / "greenroom"

FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")
PATH = re.compile(r"`\.?/?([\w.-]+(?:/[\w.-]+)+/?)`")
OWN_MACHINE = re.compile(
    r"(?<![\w.])/(?:work|workspace|home|Users|root)/[\w.]+|\.\./shared\b|\bissues? #?\d+\b|\bshared reference\b"
)


def anchors(text: str) -> set[str]:
    """The names that headings of a Markdown text can be linked by, the way GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def broken_links(path: Path, text: str) -> list[str]:
    broken = []
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            broken.append(target)
    return broken


def missing_paths(text: str) -> list[str]:
    """Paths in backticks that begin with a folder of the project and lead nowhere; a `room/file.py`
    may leave out the source folder.
    """
    missing = []
    for name in PATH.findall(text):
        first = name.split("/")[0]
        known = first in TOP or (first.strip(".") and (ROOMS / first).is_dir())
        if known and not (ROOT / name).exists() and not (ROOMS / name).exists():
            missing.append(name)
    return missing


def found(paths: list[Path], look: Callable[[Path, str], list[str]]) -> dict[Path, list[str]]:
    """What a check finds, by file."""
    return {path: some for path in paths if (some := look(path, path.read_text()))}


def test_every_link_leads_somewhere() -> None:
    assert found(DOCUMENTS, broken_links) == {}


def test_every_named_path_exists() -> None:
    assert found(DOCUMENTS, lambda _, text: missing_paths(text)) == {}


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert found(TEXTS, lambda _, text: OWN_MACHINE.findall(text)) == {}


def test_every_document_that_is_named_is_here() -> None:
    names = {document.name for document in DOCUMENTS}
    assert (
        found(TEXTS, lambda _, text: sorted({*re.findall(r"\b[\w-]+\.md\b", text)} - names)) == {}
    )


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, open_ends = set(), [ROOT / "README.md"]
    while open_ends:
        path = open_ends.pop()
        if path in reached or path.suffix != ".md" or not path.exists():
            continue
        reached.add(path)
        targets = [
            target.partition("#")[0]
            for target in LINK.findall(path.read_text())
            if not re.match(r"[a-z]+:", target)
        ]
        open_ends += [(path.parent / target).resolve() for target in targets if target]
    assert [
        str(path.relative_to(ROOT)) for path in DOCUMENTS if path.resolve() not in reached
    ] == []


@pytest.mark.parametrize("command", ["demo", "test"])
def test_the_two_commands_of_the_readme_are_there_and_can_be_run(command: str) -> None:
    assert re.search(rf"^\./{command}$", (ROOT / "README.md").read_text(), re.M)
    assert os.access(ROOT / command, os.X_OK)
    assert subprocess.run(["sh", "-n", ROOT / command], check=False).returncode == 0


def test_continuous_integration_runs_the_same_tests() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert re.search(r"^exec \./test$", (ROOT / ".ci" / "run").read_text(), re.M)


def test_every_dependency_says_what_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    compiling = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"][
        "compiled-requires"
    ]
    groups = [
        project["project"]["dependencies"],
        *project["dependency-groups"].values(),
        project["build-system"]["requires"],
        compiling,
    ]
    wanted = {re.match(r"[\w-]+", line)[0].lower() for group in groups for line in group}  # type: ignore[index]
    rows = set(
        re.findall(r"^- `([\w-]+)`: ", (ROOT / "docs/decisions/dependencies.md").read_text(), re.M)
    )
    assert wanted - rows == set(), "without an entry"
    assert rows - wanted == set(), "an entry for something that is not used"


def test_the_checks_catch_what_they_are_for() -> None:
    assert broken_links(
        ROOT / "README.md", "[a](missing.md) [b](README.md#no-such-place) [c](https://example.com)"
    ) == [
        "missing.md",
        "README.md#no-such-place",
    ]
    assert missing_paths(
        "see `docs/nowhere.md`, `rules/nowhere.py`, `src/greenroom/errors.py` and `text/html`"
    ) == [
        "docs/nowhere.md",
        "rules/nowhere.py",
    ]
    assert OWN_MACHINE.search("open(/home/somebody/notes)")
