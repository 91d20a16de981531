"""What ledgers and the coordinator tell each other: reports, answers, and the tables and counts
inside them.
"""
