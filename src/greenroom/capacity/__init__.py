"""How many visitors an origin can take, found from what it answers (docs/explanation/capacity.md).

Pure: the caller passes windows of measurements and the time. `CapacityLaw.step` returns the limits
to apply until the next window.
"""

from greenroom.capacity.histogram import BOUNDS_MS, Histogram
from greenroom.capacity.law import CapacityLaw
from greenroom.capacity.window import WINDOW_MS, CapacityTarget, OperatorLimits, Window

__all__ = [
    "BOUNDS_MS",
    "WINDOW_MS",
    "CapacityLaw",
    "CapacityTarget",
    "Histogram",
    "OperatorLimits",
    "Window",
]
