"""The control listener: management API, GraphQL, health, metrics and the state of the rooms."""
