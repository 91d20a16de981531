"""Counts, gauges and times of every room, minute by minute, merged into hours and days without
loss.

Every process keeps one `Rollup` for each room and minute. It merges by an associative and
commutative operation: counts and histograms by addition, gauges slot by slot (the highest within a
data center, added up over data centers), limits by the latest. A message carries the whole rollup
of one process, minute and room, never a difference, and is kept by (source, minute, room), so
duplicate, late or reordered messages need no repair.

Times are histograms because percentiles cannot be merged. Hours and days are merged from minutes,
so a question may read the coarsest table that fits.
"""
