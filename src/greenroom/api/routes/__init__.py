"""Routes of the management API."""
