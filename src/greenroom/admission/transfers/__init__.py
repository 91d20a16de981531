"""Sessions that follow their visitors between data centers: both ends of the exchange."""
