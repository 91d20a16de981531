"""The messages between ledgers and the coordinator: reports, answers, and the tables and counts in
them.
"""
