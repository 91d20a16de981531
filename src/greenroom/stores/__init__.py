"""Adapters that implement the ports: ledgers in memory and Redis, journal, keys, configuration and analytics databases."""
