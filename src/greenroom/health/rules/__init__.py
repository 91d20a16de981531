"""When an origin is healthy: votes of agents, verdicts of regions, and their effects."""
