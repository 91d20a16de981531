"""Frozen records that refuse to be invalid: an operator's configuration and the data of a visit."""
