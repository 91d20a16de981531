"""The ledger: permits, sessions and waiting visitors of one room in one data center."""
