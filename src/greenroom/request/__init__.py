"""One request as facts: its arrival and sender, canonical paths, routing, hosts, cookie scopes."""
