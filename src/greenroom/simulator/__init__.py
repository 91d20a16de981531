"""Runs the production admission core in virtual time: visitors, data centers, links, clocks and
faults, replayed from a seed.

`scenario` describes a run, `traces` has predefined ones, `world` runs one, `report` summarizes it.
"""
