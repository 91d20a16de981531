"""What visitors of a room may still get: set by operators and programs, shown on the waiting page."""
