"""When an origin counts as healthy: votes of agents, verdicts of regions, and what changes because
of them.
"""
