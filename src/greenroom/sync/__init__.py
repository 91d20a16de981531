"""The background loop that keeps ledgers and coordinator in step."""
