"""The visitor side of the gateway: connections, their requests, and the answers to them."""
