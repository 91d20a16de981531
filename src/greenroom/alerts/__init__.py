"""Alerts and who is told: policies, one outbox, channels."""
