"""Sessions that follow their visitors from one data center to another: both ends of the
exchange.
"""
