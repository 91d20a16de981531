"""What happens to one request: room, ticket, question to the ledger, verdict, answer. No sockets."""
