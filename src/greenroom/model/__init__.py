"""Frozen records that refuse to be invalid (they raise InvalidConfig with every problem): an
operator's configuration and the data of a visit.
"""
