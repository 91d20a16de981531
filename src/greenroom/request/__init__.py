"""One request as facts: paths and their readings, forwarded headers, routes, hosts, cookies."""
