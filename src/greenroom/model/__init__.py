"""Frozen records that refuse to be invalid: what an operator writes down and what a visit is made of."""
