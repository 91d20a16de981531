"""What operators configured, as one value at one revision: records, changes, audit log, store."""
