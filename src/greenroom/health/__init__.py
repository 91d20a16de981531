"""Health checks at work: probes, the agents that run them on time, and the desk where their reports become verdicts."""
