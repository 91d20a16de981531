"""How other proxies ask the decision service: one file for each way of asking, one row for each in
`table.DIALECTS`.
"""
