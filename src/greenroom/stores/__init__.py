"""Adapters that answer the ports: memory ledger, journal on disk, key ring."""
