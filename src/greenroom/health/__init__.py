"""Running health checks: probes, the agents that run them on time, and the monitor that turns their reports into verdicts."""
