"""How other proxies ask the decision service: one row of DIALECTS each."""
