"""Limits on the time of a test and of a run. What exceeds one is named at once.

SIGALRM fails the test, and the run goes on with the next one. Code that does not return to Python
ends its process a little later, with the traceback of every thread. A test that ended its worker is
not run again: it would only end the next one.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

CAMPAIGN_S = 3600.0
AGAIN_S = 20.0
"""For a test that goes on after its first alarm."""
PATIENCE_S = 60.0
"""From the first alarm to the end of the process."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("test_limit_s", "longest setup, call or teardown of a test", "float", 0.0)
    parser.addini("run_limit_s", "longest run with workers, without campaigns", "float", 0.0)


def pytest_configure(config: pytest.Config) -> None:
    limit_s = config.getini("test_limit_s")
    alone = config.getoption("dist", "no") == "no"  # so it is for a worker
    if limit_s and alone and not config.getoption("usepdb"):
        config.pluginmanager.register(TestLimit(limit_s))
    if not alone:
        config.pluginmanager.register(Controller(config))


class TooLong(BaseException):
    """What tests and hypothesis do not catch."""


class TestLimit:
    __test__ = False

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.phase = self.nodeid = self.rang = ""
        self.stderr = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        signal.signal(signal.SIGALRM, self.ring)

    def ring(self, _number: int, _frame: FrameType | None) -> None:
        if not self.phase:  # between two phases, where it would end the whole run
            return
        said = f"{self.phase} of {self.nodeid} took longer than its limit"
        os.write(self.stderr, f"\n{said}\n".encode())
        faulthandler.dump_traceback(self.stderr)
        self.rang = said
        # Of fixtures, pytest keeps a failure only of its own type.
        raise TooLong(said) if self.phase == "call" else pytest.fail.Exception(said)

    def limited(self, item: pytest.Item, phase: str) -> Generator[None, object, object]:
        limit_s = CAMPAIGN_S if item.get_closest_marker("campaign") else self.limit_s
        self.phase, self.nodeid, self.rang = phase, item.nodeid, ""
        signal.setitimer(signal.ITIMER_REAL, limit_s, AGAIN_S)
        # In each phase: pytest cancels it when a test fails, and then its teardown may hang.
        faulthandler.dump_traceback_later(limit_s + PATIENCE_S, exit=True, file=self.stderr)
        try:
            result = yield
            if self.rang:  # in a callback of an event loop, which has caught it
                pytest.fail(self.rang)
            return result
        finally:
            self.phase = ""
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self.limited(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self.limited(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self.limited(item, "teardown"))


class Controller:
    """Names failures as they come, and ends a run that takes too long."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.running: set[str] = set()

    def pytest_sessionstart(self) -> None:
        limit_s = self.config.getini("run_limit_s")
        if limit_s and "not campaign" in self.config.getoption("markexpr"):
            signal.signal(signal.SIGALRM, self.ring)
            signal.setitimer(signal.ITIMER_REAL, limit_s)

    def ring(self, _number: int, _frame: FrameType | None) -> None:
        names = ", ".join(sorted(self.running))
        pytest.exit(f"the run took longer than its limit; running now: {names}", returncode=1)

    @pytest.hookimpl(tryfirst=True)  # before the reporter says that it runs
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.discard(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.running.discard(report.nodeid)  # a worker that ended finishes nothing
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            reporter.write_line(f"\nFAILED {report.nodeid} ({report.when})")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        return EachOnce(config, log) if config.getoption("dist") == "loadfile" else None


class EachOnce(LoadFileScheduling):
    """Does not run the test again that ended its worker."""

    def remove_node(self, node: Any) -> str | None:
        files = self.assigned_work[node]
        ended = next(
            (name for tests in files.values() for name, done in tests.items() if not done), None
        )
        for file, tests in list(files.items()):
            if ended in tests:
                tests[ended] = True
            if all(tests.values()):
                del files[file]
        super().remove_node(node)
        return ended
