"""Runs the very same admission core in virtual time: visitors, data centers, links, clocks and faults, all replayed from a seed.

`scenario` says what happens, `traces` has ready ones, `world` runs one, `report` says how it went.
"""
