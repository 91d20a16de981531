"""Settings of a process as plain records, which everything above may import."""
