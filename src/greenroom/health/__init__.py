"""Health checks: probes, the agents that run them, votes and verdicts, their store and API."""
