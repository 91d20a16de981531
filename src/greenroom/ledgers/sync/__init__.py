"""Background loops: time passes in ledgers, reports go to the coordinator, and one process leads."""
