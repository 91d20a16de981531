"""The origin side of the gateway: connections to the application, kept and reused."""
