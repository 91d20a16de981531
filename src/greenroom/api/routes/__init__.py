"""The routes of the management API, one file for each kind of thing."""
