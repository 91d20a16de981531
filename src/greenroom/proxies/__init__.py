"""How other proxies ask the decision service: one row for each way in `table.DIALECTS`."""
