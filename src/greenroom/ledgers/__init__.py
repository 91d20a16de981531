"""Where the ledger of a room lives (memory and journal, or Redis), and the sync between data
centers.
"""
