"""The messages between ledgers and the coordinator."""
