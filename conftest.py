"""What holds for every test: how hypothesis runs, and that ./test and CI never pass by skipping.

A test that needs a right of the machine (`@pytest.mark.needs("mount")`, see machine_rights) is left
out where that right is withheld. The run says so at its start, and names the tests at its end. In
continuous integration (`CI` set) they run, and fail.
"""

import atexit
import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from machine_rights import RIGHTS, missing

pytest_plugins = ["time_limits"]

# Two workers share a small machine, so a slow example is not a failure; a failing one prints how to
# repeat it.
settings.register_profile("house", deadline=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("house"), max_examples=10)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips",
        action="store_true",
        help="a skipped test fails: a check that did not run has shown nothing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped, and here every test must run: {report.longrepr}"
        )
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and collector.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = (
            f"{collector.nodeid} was skipped as a whole, and here every test must run:"
            f" {report.longrepr}"
        )
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and modules stay until the end: no garbage is looked for among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


LEFT_OUT = pytest.StashKey[dict[str, list[str]]]()
"""Tests that were left out, by the reason."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = {}
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)  # last of all: freeing each object would take seconds


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    lacking = [reason for right in RIGHTS if (reason := missing(right))]
    if reporter is not None and not hasattr(session.config, "workerinput"):
        becomes = (
            "their tests run all the same, because CI is set"
            if os.environ.get("CI")
            else "tests that need this are left out"
        )
        for reason in lacking:
            reporter.write_line(f"{reason}: {becomes}")


ROOT = Path(__file__).parent

WOVEN = (("e2e",), ("integration",), ("contracts", "properties", "simulation"))
"""Folders of which the files are spread evenly over a run: the first ones wait for browsers and
servers, the last ones compute.

One after the other they would leave the processors idle first, and fight for them later. All other
files are short, and fill the end.
"""

LONG = {
    "test_admission_trials",
    "test_admission_trials_of_state",
    "test_api_document_is_true",
    "test_dashboard_accessibility",
    "test_forecast_accuracy",
    "test_proxy_examples",
    "test_rare_pollers",
    "test_simulated_worlds",
    "test_simulator_finds_broken_builds",
}
"""Files of half a minute of processor time or more: the first of their folders, so that no worker
has one left at the end.
"""


def woven(items: list[pytest.Item]) -> list[pytest.Item]:
    """The same tests, those of a file together and in their order."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: item.path.stem not in LONG):
        files.setdefault(item.path, []).append(item)
    group = {folder: row for row, folders in enumerate(WOVEN) for folder in folders}
    rows: dict[int, list[Path]] = {}
    for file in files:
        rows.setdefault(
            next(
                (group[part] for part in file.relative_to(ROOT).parts if part in group), len(WOVEN)
            ),
            [],
        ).append(file)
    short = rows.pop(len(WOVEN), [])
    spread = [
        ((number + 0.5) / len(row), at, file)
        for at, row in rows.items()
        for number, file in enumerate(row)
    ]
    return [
        item for file in (*(file for _, _, file in sorted(spread)), *short) for item in files[file]
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out(config, items)
    items[:] = woven(items)


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("CI"):
        return
    left_out = config.stash[LEFT_OUT]
    for item in items:
        reason = next(
            (
                missing(right)
                for mark in item.iter_markers("needs")
                for right in mark.args
                if missing(right)
            ),
            "",
        )
        if reason:
            left_out.setdefault(reason, []).append(item.nodeid)
    names = {name for some in left_out.values() for name in some}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in names])
    items[:] = [item for item in items if item.nodeid not in names]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        gc.unfreeze()  # DuckDB reports as leaks what is frozen at the end


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects all tests, so the last one says what each would say."""
    node.config.stash[LEFT_OUT] = (
        getattr(node, "workeroutput", {}).get("left_out") or node.config.stash[LEFT_OUT]
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason, names in config.stash[LEFT_OUT].items():
        terminalreporter.section(f"{len(names)} tests were left out: {reason}")
        for name in sorted(names):
            terminalreporter.write_line(name)
