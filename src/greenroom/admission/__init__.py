"""Admission by the ESCROW protocol: ledger operations and the coordinator, pure: time and chance are arguments."""
