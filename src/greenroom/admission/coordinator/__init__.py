"""The coordinator: leases permits to data centers, and is the only one that knows the whole
line.
"""
