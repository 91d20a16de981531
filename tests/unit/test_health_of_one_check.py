"""What fails about one health check stops no other."""

import pytest
from config_material import health_check

from greenroom.health import monitor as module
from greenroom.health.alerts import Placed
from greenroom.health.monitor import HealthMonitor
from greenroom.health.outcome import Pending
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import HealthMemory


def test_an_exception_about_one_check_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {key: health_check(key) for key in ("bad", "good")}
    looked = []

    def judged(check, *rest):
        if check.name == "bad":
            raise RuntimeError("only here")
        looked.append(check.name)
        return known(check, *rest)

    known = module.judged
    monkeypatch.setattr(module, "judged", judged)
    monitor = HealthMonitor(lambda: 1, Pending())
    monitor.load(HealthMemory(conditions={key: Condition() for key in checks}))
    placed = {key: Placed(check) for key, check in checks.items()}
    monitor.configure(placed)
    assert looked == ["good"]
    for _ in checks:
        monitor.sweep()
    assert looked == ["good", "good"]
