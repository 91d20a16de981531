"""Brings what processes record to the analytics store: looks at rooms, closes minutes, writes them
in a thread of its own.
"""
