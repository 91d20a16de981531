"""What happened in each room, minute by minute: counts, gauges and times, merged upward without
losing anything.

Theory. Every process keeps one `Rollup` for each room and minute. All that is in it merges by an
operation that is associative and commutative: counts and histograms by addition, gauges slot by
slot (the highest within a data center, added up over data centers), limits by the latest. A message
carries the whole rollup of one process, minute and room, never a difference, and a set of messages
is kept by (source, minute, room). So one that comes twice, late or in another order has nothing to
repair.

Times are kept as histograms (`histogram`), because percentiles cannot be merged and histograms can.
Hours and days are made of minutes by the same merge, so a question may read whichever table is
coarse enough and gets the same numbers (`question`, `metrics`).

Nothing in here touches a clock, a disk or a socket: `docs/explanation/analytics.md` says who calls
it.
"""
