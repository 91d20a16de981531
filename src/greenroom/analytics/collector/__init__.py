"""Collects what processes record and writes it to the analytics store in its own thread."""
