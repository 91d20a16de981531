"""The coordinator: leases permits to data centers; the only component that knows the whole line."""
