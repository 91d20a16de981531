"""A desk without a store: plans are made on a value and carried out on it, so a test can ask
thousands of times.
"""

import itertools
from typing import Any

import pytest

from greenroom.model.change import applied
from greenroom.model.configuration import Configuration
from greenroom.web.config_service import ChangeContext, ConfigChange
from greenroom.web.refusals import Refused

NOW_MS = 1_700_000_000_000


class DeskInMemory:
    """`known` is the newest configuration; every plan happens a second after the one before."""

    def __init__(self) -> None:
        self.known = Configuration()
        self.now_ms = NOW_MS
        self._ids = itertools.count(1)

    def do(self, plan: ConfigChange) -> Any:
        """Carries a plan out; its answer."""
        self.now_ms += 1_000
        planned = plan(self.known, ChangeContext(self.now_ms, lambda: f"{next(self._ids):032x}"))
        self.known, _ = applied(self.known, planned.changes, self.now_ms)
        return planned.answer(self.known)

    def refusal(self, plan: ConfigChange) -> list[tuple[str, str]]:
        """(name of the code, pointer) of every fault; nothing must have changed."""
        before = self.known
        with pytest.raises(Refused) as caught:
            self.do(plan)
        assert self.known is before
        faults = caught.value.faults
        assert all(fault.message for fault in faults)
        return sorted((fault.code.name, fault.pointer) for fault in faults)
