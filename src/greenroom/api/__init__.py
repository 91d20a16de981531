"""What the control listener answers: the management API, GraphQL, health, metrics and the state of
the rooms.
"""
