"""The only wiring and the only real clock: assembles, starts, reloads and stops one process, or
workers.
"""
