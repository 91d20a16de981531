"""The visitor side: connections, their requests and the answers."""
