"""The line of one ledger, and the queueing methods that say who is next."""
