"""Sums over all data centers, updated by difference."""

from dataclasses import dataclass

from greenroom.admission.coordinator.data_center import DataCenter, Weight


@dataclass(slots=True)
class Sums(Weight):
    def weigh(self, center: DataCenter) -> bool:
        """Returns whether its permits changed."""
        weight = center.weight
        outstanding = max(0, center.outstanding)
        changed = outstanding != weight.outstanding
        if changed:
            self.outstanding += outstanding - weight.outstanding
            weight.outstanding = outstanding
        value = center.value
        if value != weight.value:
            self.value += value - weight.value
            weight.value = value
        uncovered = (
            max(0, center.waiting - outstanding) if center.waiting and center.reachable else 0
        )
        if uncovered != weight.uncovered:
            self.uncovered += uncovered - weight.uncovered
            weight.uncovered = uncovered
        owed = center.owed if center.over else 0
        if owed != weight.owed:
            self.owed += owed - weight.owed
            weight.owed = owed
        if center.arrivals_per_s != weight.arrivals_per_s:
            self.arrivals_per_s += center.arrivals_per_s - weight.arrivals_per_s
            weight.arrivals_per_s = center.arrivals_per_s
        return changed
