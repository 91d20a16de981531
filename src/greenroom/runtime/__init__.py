"""The only wiring and the only real clock: assembly, start, reload and stop, of one process and of
workers.
"""
