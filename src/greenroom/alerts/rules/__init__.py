"""Alerts without sockets, clocks or stores: which types there are, which policy wants which alert,
and how each channel writes it down.
"""
